"""Settings of Kafka's clients: librdkafka's names, or a file with the names of Java's clients.

A value may reference a secret: ``${env:NAME}``, or ``${file:PATH:KEY}`` for an entry of a properties file. Messages never contain secrets.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, Dict, Mapping, Optional, Union

from millrace_rl.errors import Refused

Client = Union[None, str, "os.PathLike[str]", Mapping[str, Any]]

_REFERENCE = re.compile(r"\$\{([^}:]*)(?::([^}]*))?}")
_LOGIN = re.compile(r'(\w+)\s*=\s*"((?:[^"\\]|\\.)*)"')
_MODULES = {"PlainLoginModule": "PLAIN", "ScramLoginModule": "SCRAM"}
_KINDS = ("consumer.", "producer.", "admin.", "streams.")
#: Java client settings that librdkafka lacks
_JAVAS_OWN = {"sasl.login.callback.handler.class", "config.providers"}


def properties(path: Union[str, "os.PathLike[str]"]) -> Dict[str, str]:
    """The entries of a Java properties file: ``key=value`` or ``key: value``, ``#`` before a comment, a backslash at the end of a line to
    continue on the next."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as e:
        raise Refused(f"{path} cannot be read as a file of client settings: {getattr(e, 'strerror', None) or e}") from None
    found: Dict[str, str] = {}
    whole = ""
    for number, line in enumerate(lines, 1):
        line = line.strip()
        if not whole and (not line or line[0] in "#!"):
            continue
        if line.endswith("\\") and not line.endswith("\\\\"):
            whole += line[:-1]
            continue
        whole += line
        entry = re.match(r"([^=:\s]+)\s*[=:\s]\s*(.*)$", whole)
        if not entry:
            raise Refused(f"line {number} of {path} is no setting; it must be of the form key=value")
        found[entry.group(1)] = entry.group(2).replace("\\\\", "\\")
        whole = ""
    return found


def followed(name: str, text: str) -> str:
    """Resolves the references of a text."""

    def secret(reference: "re.Match[str]") -> str:
        kind, rest = reference.group(1), reference.group(2)
        refers = f"{name} refers to {reference.group()}, and "
        if kind == "env" and rest:
            if rest not in os.environ:
                raise Refused(f"{refers}there is no environment variable {rest}; set it before the start")
            return os.environ[rest]
        if kind == "file" and rest and ":" in rest:
            path, key = rest.rsplit(":", 1)
            entries = properties(path)
            if key not in entries:
                raise Refused(f"{refers}the file {path} has no key {key}; add it, or correct the key")
            return entries[key]
        raise Refused(f"{refers}that is no reference to a secret; write ${{env:NAME}} or ${{file:PATH:KEY}}")

    return _REFERENCE.sub(secret, text)


def _login(settings: Dict[str, Any], where: str) -> None:
    """Splits a Java login into librdkafka's user and password."""
    jaas = settings.pop("sasl.jaas.config", None)
    if jaas is None:
        return
    module = next((name for name in _MODULES if name in jaas), None)
    entries = dict(_LOGIN.findall(jaas))
    if module is None or "username" not in entries or "password" not in entries:
        raise Refused(f"sasl.jaas.config{where} is no login with username=\"...\" and password=\"...\" of PlainLoginModule or "
                      "ScramLoginModule; give librdkafka's settings of your mechanism in its place")
    settings.setdefault("sasl.username", entries["username"].replace('\\"', '"'))
    settings.setdefault("sasl.password", entries["password"].replace('\\"', '"'))


def _stores(settings: Dict[str, Any], where: str) -> None:
    """Converts Java's certificate stores, as far as librdkafka reads them."""
    kind = str(settings.pop("ssl.truststore.type", "")).upper()
    trusted = settings.pop("ssl.truststore.location", None)
    settings.pop("ssl.truststore.password", None)
    if trusted is not None:
        if kind != "PEM" and not str(trusted).endswith((".pem", ".crt", ".cer")):
            raise Refused(f"ssl.truststore.location{where} is {trusted}, and librdkafka reads certificates as PEM only; make one with "
                          f"'keytool -exportcert -rfc -keystore {trusted} -file ca.pem', and give ssl.ca.location=ca.pem")
        settings.setdefault("ssl.ca.location", trusted)
    kind = str(settings.pop("ssl.keystore.type", "")).upper()
    own = settings.get("ssl.keystore.location")
    if own is not None and kind != "PKCS12" and not str(own).endswith((".p12", ".pfx")):
        raise Refused(f"ssl.keystore.location{where} is {own}, and librdkafka reads a PKCS12 store only; give one, or "
                      "ssl.certificate.location and ssl.key.location as PEM")
    if "ssl.endpoint.identification.algorithm" in settings:
        settings["ssl.endpoint.identification.algorithm"] = settings["ssl.endpoint.identification.algorithm"] or "none"


class ClientSettings:
    """Connection settings of a cluster.

    :param bootstrap: bootstrap servers, ``host:port``, separated by commas
    :param client: a file with settings, or a mapping of them. A name may begin with ``consumer.`` or ``producer.``, and is then for
        clients of that kind only. Other names are librdkafka's.
    """

    def __init__(self, bootstrap: str, client: Client = None):
        given: Mapping[str, Any]
        self._where = ""
        if client is None:
            given = {}
        elif isinstance(client, Mapping):
            given = client
        else:
            given = properties(client)
            self._where = f" in {client}"
        said = given.get("bootstrap.servers")
        if not bootstrap and not said:
            raise Refused("nothing says where the cluster is; give bootstrap as 'host:port'")
        self.bootstrap = str(bootstrap or said)
        self._given = {name: value for name, value in given.items() if name != "bootstrap.servers" and name not in _JAVAS_OWN}
        self.of("consumer.")  # reports broken references now

    def of(self, kind: str, own: Optional[Mapping[str, Any]] = None) -> Dict[str, Any]:
        """Settings of a client kind, ``consumer.`` or ``producer.``: the role's defaults overridden by the given ones."""
        settings: Dict[str, Any] = {"bootstrap.servers": self.bootstrap, **(own or {})}
        for ours in (False, True):  # settings of this kind override general ones
            for name, value in self._given.items():
                prefix = next((p for p in _KINDS if name.startswith(p)), "")
                if prefix == (kind if ours else ""):
                    settings[name[len(prefix):]] = followed(name + self._where, value) if isinstance(value, str) else value
        _login(settings, self._where)
        _stores(settings, self._where)
        return settings
