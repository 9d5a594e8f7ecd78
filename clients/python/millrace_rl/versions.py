"""Versions of the policy on the log: which there are, and their weights."""

from __future__ import annotations

import hashlib
import json
import urllib.parse
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional

import numpy as np

from millrace_rl.avro import Record
from millrace_rl.errors import Malformed, Missing
from millrace_rl.log import LOG, Kafka, Records, Schemas
from millrace_rl.tensors import DTYPES, Arrays, apply_delta, to_float32


@dataclass(frozen=True)
class Identity:
    """Which run, epoch and policy; and where an epoch after the first began.

    :param prefix: of the run's topics
    :param parent: of a later epoch, the epoch, version and hash of weights that it began from
    :param began_at: the end of each partition then, by ``topic-partition``
    """

    prefix: str
    run_id: str
    epoch: int
    policy_id: str
    parent: Optional[Mapping[str, Any]] = None
    began_at: Mapping[str, int] = field(default_factory=dict)

    def owns(self, record: Mapping[str, Any]) -> bool:
        """Whether a record is of this run, epoch and policy, as far as it names one."""
        return bool(record["run_id"] == self.run_id and record["epoch"] == self.epoch
                    and record.get("policy_id", self.policy_id) == self.policy_id)

    def fields(self, policy: bool = True) -> Record:
        """What every record begins with."""
        of = {"run_id": self.run_id, "epoch": self.epoch}
        return {**of, "policy_id": self.policy_id} if policy else of

    def topic(self, name: str) -> str:
        return self.prefix + name

    def group(self, role: str) -> str:
        """A consumer group of the epoch."""
        return self.prefix + (role if self.epoch == 0 else f"{role}-{self.epoch}")

    def beginning(self, topic: str, partition: int) -> int:
        """First offset that can be this epoch's."""
        return self.began_at.get(f"{topic}-{partition}", 0)


class Chain:
    """The manifests of an epoch in order. A manifest that does not extend the chain is ignored.

    The first is version 0, or the one that the epoch began from. Each next one has the next number, names the one before as its parent
    and, if it is a delta, has its base on the chain. A manifest that is ahead waits for those before it: compaction may have left the
    copy of an earlier one behind it.
    """

    def __init__(self, identity: Identity):
        self._identity = identity
        self._ahead: Dict[int, List[Record]] = {}
        self.by_version: Dict[int, Record] = {}
        self.newest: Optional[Record] = None

    def add(self, manifest: Record) -> None:
        """One that was read, in the order of the log."""
        version = manifest["version"]
        known = self.by_version.get(version)
        if known is not None:
            same = known["weights"]["sha256"] == manifest["weights"]["sha256"]
            if same and known["optimizer"] is None and manifest["optimizer"] is not None:
                self.by_version[version] = manifest  # written once more by a learner that stopped, with its state
                if self.newest is known:
                    self.newest = manifest
            return
        self._ahead.setdefault(version, []).append(manifest)
        while True:
            candidates = self._ahead.get(self._due(), [])
            following = [m for m in candidates if self._follows(m)]
            if not following:
                return
            confirmed = [m for m in following if self._is_confirmed(m)]
            chosen = (confirmed or following)[0]
            del self._ahead[chosen["version"]]
            self.by_version[chosen["version"]] = self.newest = chosen

    def _due(self) -> int:
        if self.newest is not None:
            return int(self.newest["version"]) + 1
        return int(self._identity.parent["version"]) if self._identity.parent else 0

    def _follows(self, manifest: Record) -> bool:
        weights, parent = manifest["weights"], self._identity.parent
        if self.newest is None:
            begins = manifest.get("parent_epoch") is None if parent is None else (
                manifest.get("parent_epoch") == parent["epoch"] and weights["sha256"] == parent["weights_sha256"])
            return begins and weights["base_version"] is None
        base = self.by_version.get(weights["base_version"])
        return (manifest["parent_version"] == self.newest["version"] and manifest.get("parent_epoch") is None and
                (weights["base_version"] is None or base is not None and base["weights"]["sha256"] == weights["base_sha256"]))

    def _is_confirmed(self, manifest: Record) -> bool:
        return any(after["weights"]["base_sha256"] == manifest["weights"]["sha256"]
                   for after in self._ahead.get(manifest["version"] + 1, []))


@dataclass
class _Held:
    version: int
    sha256: str
    arrays: Arrays
    dtypes: Dict[str, str]


class Versions:
    """Follows the versions of a run. One thread uses it."""

    def __init__(self, kafka: Kafka, schemas: Schemas, identity: Identity, partition: int):
        self._kafka = kafka
        self._identity = identity
        self._topic = identity.topic("policy-versions")
        self._partition = partition
        self._manifests = Records(schemas)
        self._chunks = Records(schemas)
        self._consumer = kafka.consumer()
        self._next = 0
        self._held: Optional[_Held] = None
        self._base: Optional[_Held] = None
        self.chain = Chain(identity)

    def follow(self) -> Optional[Record]:
        """Reads what has been committed by now; the newest manifest, None if there is none."""
        low, high = self._kafka.ends(self._consumer, self._topic, self._partition)
        start = max(low, self._next)
        if high < self._next:
            LOG.warning("%s-%d was cut off at offset %d, behind what was read of it; it is read again", self._topic, self._partition, high)
            self.chain, start = Chain(self._identity), low
        for messages in self._kafka.read(self._consumer, {(self._topic, self._partition): (start, high)}):
            for message in messages:
                manifest = self._manifests.decode(message)
                if manifest is not None and self._identity.owns(manifest):
                    self.chain.add(manifest)
        self._next = high
        return self.chain.newest

    def manifest(self, version: int) -> Record:
        """Of one version.

        :raises Missing: if it is not on the chain
        """
        found = self.chain.by_version.get(version)
        if found is None:
            newest = self.chain.newest
            raise Missing(f"version {version} is not among those that are published; the newest is "
                          f"{'none' if newest is None else newest['version']}")
        return found

    def weights(self, version: int) -> Arrays:
        """Returns the weights of a version as float32, by their safetensors names; read-only views where no copy was needed.

        For an adapter, the base with the adapter merged.
        """
        own, adapter = self.tensors(version), self.manifest(version).get("adapter")
        if adapter is None:
            return own
        return _put_upon(self._base_of(version, adapter), own, adapter)

    def tensors(self, version: int) -> Arrays:
        """Like :meth:`weights`, but for an adapter its own tensors."""
        held = self._load(version)
        return {name: to_float32(array, held.dtypes[name]) for name, array in held.arrays.items()}

    def _base_of(self, version: int, adapter: Record) -> Arrays:
        if self._base is None or self._base.sha256 != adapter["base_sha256"]:
            base = self.manifest(adapter["base_version"])
            if base["weights"]["sha256"] != adapter["base_sha256"]:
                raise Malformed(f"version {version} is an adapter upon other weights than version {adapter['base_version']} has")
            kept = self._held
            self._base = self._load(adapter["base_version"])
            self._held = kept
        return {name: to_float32(array, self._base.dtypes[name]) for name, array in self._base.arrays.items()}

    def raw(self, version: int) -> Arrays:
        """Tensors as on the log: bfloat16 as raw bits."""
        return self._load(version).arrays

    def state(self, version: int) -> Arrays:
        """State that a trainer published with a version, such as its optimizer's; empty without one."""
        location = self.manifest(version)["optimizer"]
        if location is None:
            return {}
        arrays = self._read(self.manifest(version), location, {})
        return {e["name"]: to_float32(arrays[e["name"]], e["dtype"]) for e in location["tensors"]}

    def published(self, manifest: Record, arrays: Arrays) -> None:
        """A trainer of this process has committed this one."""
        self._held = _Held(manifest["version"], manifest["weights"]["sha256"], arrays, _dtypes(manifest["weights"]))

    def _load(self, version: int) -> _Held:
        links = []
        link = self.manifest(version)
        base: Arrays = {}
        while True:
            location = link["weights"]
            if self._held is not None and self._held.sha256 == location["sha256"] and self._held.version == link["version"]:
                base = self._held.arrays
                break
            links.append(link)
            if location["base_version"] is None:
                break
            link = self.manifest(location["base_version"])
            if link["weights"]["sha256"] != location["base_sha256"]:
                raise Malformed(f"version {links[-1]['version']} is a delta against other weights than version {link['version']} has")
        for link in reversed(links):
            base = self._read(link, link["weights"], base)
        wanted = self.manifest(version)
        self._held = _Held(version, wanted["weights"]["sha256"], base, _dtypes(wanted["weights"]))
        return self._held

    def _read(self, manifest: Record, location: Record, base: Arrays) -> Arrays:
        version = manifest["version"]
        data = {e["name"]: bytearray(e["encoded_bytes"] or e["bytes"]) for e in location["tensors"]}
        if location["uri"] is None:
            self._chunks_into(data, manifest, location)
        else:
            _object_into(data, version, location)
        found: Arrays = {}
        whole = hashlib.sha256()
        for entry in location["tensors"]:
            name = entry["name"]
            if entry["dtype"] not in DTYPES or entry["encoding"] not in ("RAW", "DELTA"):
                raise Malformed(f"version {version} has {name} as {entry['dtype']}, {entry['encoding']}, which this release of the "
                                "package does not know; update it")
            if entry["encoding"] == "DELTA":
                data[name] = apply_delta(base[name], memoryview(data[name]))
            if hashlib.sha256(data[name]).hexdigest() != entry["sha256"]:
                raise Malformed(f"version {version} has other bytes in {name} than its manifest says")
            whole.update(data[name])
            array = np.frombuffer(data[name], DTYPES[entry["dtype"]]).reshape(entry["dims"])
            array.flags.writeable = False
            found[name] = array
        if whole.hexdigest() != location["sha256"]:
            raise Malformed(f"version {version} has other bytes than its manifest says")
        return found

    def _chunks_into(self, data: Dict[str, bytearray], manifest: Record, location: Record) -> None:
        version, left = manifest["version"], {name: len(target) for name, target in data.items()}
        at = location["topic"], location["partition"]
        self._kafka.look_up(self._consumer, at[0])
        try:
            for messages in self._kafka.read(self._consumer, {at: (location["first_offset"], location["last_offset"] + 1)}):
                for message in messages:
                    chunk = self._chunks.decode(message)
                    if chunk is None or not self._identity.owns(chunk) or chunk["version"] != version or chunk["tensor"] not in data:
                        continue
                    target, start = data[chunk["tensor"]], chunk["start"]
                    if start < 0 or start + len(chunk["data"]) > len(target):
                        raise Malformed(f"version {version} has a chunk of {chunk['tensor']} beyond its end")
                    target[start:start + len(chunk["data"])] = chunk["data"]
                    left[chunk["tensor"]] -= len(chunk["data"])
        except Missing as e:
            raise Missing(f"version {version} is no longer kept: {e}") from None
        short = [name for name, bytes_left in left.items() if bytes_left > 0]
        if short:
            raise Missing(f"version {version} lacks chunks of {short[0]} on {at[0]}-{at[1]}; they were removed, or the log has lost them")


def _dtypes(location: Record) -> Dict[str, str]:
    return {entry["name"]: entry["dtype"] for entry in location["tensors"]}


def _object_into(data: Dict[str, bytearray], version: int, location: Record) -> None:
    uri = urllib.parse.urlsplit(location["uri"])
    if uri.scheme != "file":
        raise Missing(f"version {version} lies at {location['uri']}, and this package reads the log and file:// only; run with "
                      "weights.store=kafka or a directory that all roles share")
    path = Path(urllib.parse.unquote(uri.path))
    try:
        with path.open("rb") as file:
            for entry in location["tensors"]:
                if file.readinto(data[entry["name"]]) != len(data[entry["name"]]):
                    raise Malformed(f"version {version}: {path} is shorter than its manifest says")
    except OSError as e:
        raise Missing(f"version {version} lies at {path}, which cannot be read: {e.strerror}") from None


def _put_upon(base: Arrays, adapter: Arrays, of: Record) -> Arrays:
    """W + (alpha / rank) B A."""
    merged = dict(base)
    for name, a in adapter.items():
        if name.endswith(".lora_A.weight"):
            layer = name[:-len(".lora_A.weight")]
            product = adapter[layer + ".lora_B.weight"] @ a
            merged[layer + ".weight"] = base[layer + ".weight"] + np.float32(of["alpha"] / of["rank"]) * product
    return merged


def shape_of(manifest: Record) -> Dict[str, Any]:
    """The decoder's shape, under the names of Hugging Face's config.json."""
    shape: Dict[str, Any] = json.loads(manifest["shape"])
    return shape
