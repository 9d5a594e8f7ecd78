"""Versions of a run in a folder or a bucket, as ``millrace model publish`` writes them; read without Kafka.

``latest.json`` names the newest version. ``41.json`` is a manifest; it lists the files of the directory ``41`` with their SHA-256. A full
version is a Hugging Face directory. A delta has a ``base_version`` and ``delta.safetensors``: a changed tensor is stored as
``NAME.indices``, indices in the flattened tensor, and ``NAME.values``, the new values; or whole, as ``NAME``. The manifest's ``sha256`` is
over the bytes of all tensors of the version, in the order of the full version's file. An adapter is full, in PEFT's layout.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Union

import numpy as np

from millrace_rl.errors import Malformed, MillraceError, Missing
from millrace_rl.tensors import DTYPES, Arrays

_FORMAT = 1
_NAMES = {kind: name for name, kind in DTYPES.items()}
_TYPES = {**DTYPES, "I32": np.dtype("<i4"), "I64": np.dtype("<i8")}
_FULL, _ADAPTER, _DELTA, _CARD = "model.safetensors", "adapter_model.safetensors", "delta.safetensors", "README.md"


class PublishedVersions:
    """A folder of versions. Not thread-safe.

    :param folder: its path; or a function from a name in it, such as ``41/delta.safetensors``, to the bytes there, as of a bucket. It raises
        FileNotFoundError where there is nothing
    :ivar version: that :meth:`load` returned last; None before
    """

    def __init__(self, folder: Union[str, "os.PathLike[str]", Callable[[str], bytes]]):
        self._folder: Any = "the store" if callable(folder) else Path(folder)
        self._read: Callable[[str], bytes] = folder if callable(folder) else lambda name: (self._folder / name).read_bytes()
        self._tensors: Arrays = {}
        self._full: Optional[Dict[str, Any]] = None
        self.version: Optional[int] = None

    def latest(self) -> int:
        """The newest version.

        :raises Missing: if the folder has none
        """
        return int(self._json("latest.json")["version"])

    def load(self, version: Optional[int] = None) -> Arrays:
        """Returns the tensors of a version, or of its adapter, by name, bit for bit and read-only; bfloat16 as bits in uint16.

        Reads the deltas since the version that was loaded last, if it is a base of this one; else its full version and all deltas since.

        :param version: the newest if None
        :raises Missing: if it is not in the folder, or was removed meanwhile
        :raises Malformed: if a file or the result contradicts the manifest; the version loaded last stays
        """
        chain: List[Dict[str, Any]] = []
        wanted: Optional[int] = self.latest() if version is None else version
        while wanted is not None and wanted != self.version:
            manifest = self._json(f"{wanted}.json")
            if manifest["format"] != _FORMAT:
                raise Malformed(f"{wanted}.json in {self._folder} is of format {manifest['format']}, and this release reads {_FORMAT}; update it")
            chain.append(manifest)
            wanted = manifest["base_version"]
        tensors, full = (dict(self._tensors), self._full) if wanted is not None else ({}, None)
        for manifest in reversed(chain):
            if manifest["base_version"] is None:
                full, tensors = manifest, self._parsed(manifest, _weights_of(manifest))
            else:
                _apply(tensors, self._parsed(manifest, _DELTA))
        if chain:
            digest = hashlib.sha256()
            for array in tensors.values():
                digest.update(np.ascontiguousarray(array).view(np.uint8).data)
            if digest.hexdigest() != chain[0]["sha256"]:
                raise Malformed(f"version {chain[0]['version']} of {self._folder} has the SHA-256 {digest.hexdigest()} once it is put together, and "
                                f"its manifest says {chain[0]['sha256']}")
            self._tensors, self._full, self.version = tensors, full, int(chain[0]["version"])
        for array in self._tensors.values():
            array.flags.writeable = False
        return dict(self._tensors)

    def save(self, directory: Union[str, "os.PathLike[str]"], version: Optional[int] = None) -> int:
        """Writes a version as a new Hugging Face or PEFT directory, loadable by vLLM and SGLang; created atomically.

        :returns: the version
        """
        tensors, target = self.load(version), Path(directory)
        if target.exists():
            raise MillraceError(f"{target} exists and is not overwritten; name a new directory")
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=f".{target.name}.partial-", dir=target.parent))
        try:
            assert self._full is not None and self.version is not None
            weights = _weights_of(self._full)
            for name in self._full["files"]:
                if name not in (weights, _CARD):  # the card is about the full version
                    (partial / name).write_bytes(self._bytes(self._full, name))
            _write(partial / weights, tensors)
            partial.chmod(0o755)
            partial.rename(target)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
        return self.version

    def _json(self, name: str) -> Dict[str, Any]:
        try:
            found: Dict[str, Any] = json.loads(self._read(name))
            return found
        except FileNotFoundError:
            raise Missing(f"{self._folder} has no {name}: " + ("no version is there yet" if name == "latest.json" else
                          "that version was not written, or was removed by --keep; load the newest")) from None
        except ValueError as e:
            raise Malformed(f"{name} in {self._folder} is no JSON ({e})") from None

    def _bytes(self, manifest: Dict[str, Any], name: str) -> bytes:
        path, described = f"{manifest['version']}/{Path(name).name}", manifest["files"][name]
        shown = f"{self._folder}/{path}"
        try:
            content = self._read(path)
        except FileNotFoundError:
            raise Missing(f"{shown} was removed meanwhile; load the newest version") from None
        if hashlib.sha256(content).hexdigest() != described["sha256"]:
            raise Malformed(f"{shown} has {len(content)} bytes of another SHA-256 than the {described['bytes']} of {described['sha256']} that its "
                            "manifest names; copy it again")
        return content

    def _parsed(self, manifest: Dict[str, Any], name: str) -> Arrays:
        content = self._bytes(manifest, name)
        begin = 8 + int.from_bytes(content[:8], "little")
        header = json.loads(content[8:begin])
        return {key: np.frombuffer(content, _TYPES[entry["dtype"]], int(np.prod(entry["shape"], dtype=np.int64)),
                                   begin + entry["data_offsets"][0]).reshape(entry["shape"])
                for key, entry in header.items() if key != "__metadata__"}


def _weights_of(manifest: Dict[str, Any]) -> str:
    return _ADAPTER if manifest.get("adapter") else _FULL


def _apply(tensors: Arrays, delta: Arrays) -> None:
    for name, array in delta.items():
        if name in tensors:
            tensors[name] = array
        elif name.endswith(".indices"):
            name = name[:-len(".indices")]
            tensors[name] = tensors[name].copy()
            tensors[name].reshape(-1)[array] = delta[f"{name}.values"]


def _write(path: Path, tensors: Arrays) -> None:
    header: Dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, array in tensors.items():
        header[name] = dict(dtype=_NAMES[array.dtype], shape=list(array.shape), data_offsets=[end, end + array.nbytes])
        end += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for array in tensors.values():
            file.write(np.ascontiguousarray(array).data)


def main(arguments: Optional[List[str]] = None) -> None:
    parser = argparse.ArgumentParser(prog="python3 -m millrace_rl.published",
                                     description="Writes a version out of a folder of 'millrace model publish' as a Hugging Face directory.")
    parser.add_argument("folder", help="that the versions are published to")
    parser.add_argument("--to", required=True, metavar="DIR", help="new directory")
    parser.add_argument("--version", type=int, metavar="V", help="default: the newest")
    given = parser.parse_args(arguments)
    try:
        print(f"version {PublishedVersions(given.folder).save(given.to, given.version)} is in {given.to}")
    except MillraceError as e:
        sys.exit(f"millrace_rl.published: {e}")


if __name__ == "__main__":
    main()
