"""Tensors by name: of state dicts, safetensors files and versions on the log."""

from __future__ import annotations

import ctypes
import ctypes.util
import json
import os
import re
import struct
from typing import Any, Dict, Iterable, List, Mapping, Sequence, Union

import numpy as np
from numpy.typing import NDArray

from millrace_rl.errors import Malformed, Missing, Refused

Arrays = Dict[str, "NDArray[Any]"]
Weights = Union[Mapping[str, Any], str, "os.PathLike[str]"]

#: of safetensors and of a manifest; NumPy has no bfloat16, so its bits are kept
DTYPES: Dict[str, "np.dtype[Any]"] = {"F32": np.dtype("<f4"), "BF16": np.dtype("<u2"), "F16": np.dtype("<f2"), "F64": np.dtype("<f8")}


#: suffix of the names of a split matrix's row ranges
_PIECE = re.compile(r"\[\d+\]$")


def joined(weights: Mapping[str, "NDArray[Any]"]) -> Arrays:
    """Joins row ranges to whole matrices: ``name[0]``, ``name[1]`` and so on, as a version splits the largest."""
    pieces: Dict[str, List[str]] = {}
    for name in weights:
        pieces.setdefault(_PIECE.sub("", name), []).append(name)
    return {whole: weights[names[0]] if names == [whole] else np.concatenate([weights[name] for name in sorted(names)])
            for whole, names in pieces.items()}


def _cut(given: Mapping[str, Any], due: Iterable[Mapping[str, Any]]) -> Dict[str, Any]:
    """Splits whole matrices into the row ranges of a version."""
    cut, ends = dict(given), dict.fromkeys(given, 0)
    for entry in due:
        whole = _PIECE.sub("", entry["name"])
        if whole != entry["name"] and whole in given:
            begin, ends[whole] = ends[whole], ends[whole] + int(entry["dims"][0])
            cut[entry["name"]] = given[whole][begin:ends[whole]]
            cut.pop(whole, None)
    for whole, end in ends.items():
        if end and len(given[whole]) != end:
            raise Refused(f"{whole} has {len(given[whole])} rows, and in the version before it {end}")
    return cut


def to_float32(array: "NDArray[Any]", dtype: str) -> "NDArray[np.float32]":
    """The values of a tensor of the log as float32, which holds those of bfloat16 exactly."""
    if dtype == "BF16":
        return (array.astype("<u4") << 16).view("<f4")
    return np.asarray(array, "<f4")


def to_bfloat16(array: "NDArray[Any]") -> "NDArray[np.uint16]":
    """The bits of the nearest bfloat16, ties to even."""
    bits: NDArray[np.uint32] = np.ascontiguousarray(array, "<f4").view("<u4")
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("<u2")


def safetensors(path: Union[str, "os.PathLike[str]"]) -> Arrays:
    """The tensors of a safetensors file as float32, mapped from the file where they are of that type."""
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        first = file.read(8)
        length = struct.unpack("<Q", first)[0] if len(first) == 8 else size
        if length > size - 8:
            raise Malformed(f"{path} is no safetensors file: its header would be {length} bytes long, and the file has {size}")
        try:
            header = json.loads(file.read(length))
        except ValueError as e:
            raise Malformed(f"{path} is no safetensors file: its header is no JSON ({e})") from None
    found: Arrays = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        if entry["dtype"] not in DTYPES:
            raise Refused(f"{name} in {path} is of {entry['dtype']}, and weights are of {', '.join(DTYPES)}")
        begin, end = entry["data_offsets"]
        dtype, dims = DTYPES[entry["dtype"]], tuple(entry["shape"])
        if end - begin != dtype.itemsize * int(np.prod(dims, dtype=np.int64)) or 8 + length + end > size:
            raise Malformed(f"{name} in {path} claims the bytes {begin} to {end}, which are not those of {entry['dtype']}{list(dims)}")
        mapped = np.memmap(path, dtype, "r", 8 + length + begin, dims) if end > begin else np.zeros(dims, dtype)
        found[name] = to_float32(mapped, entry["dtype"])
    return found


def as_float32(name: str, value: Any) -> "NDArray[np.float32]":
    """A tensor of a state dict, torch's or NumPy's, as float32 in rows."""
    if hasattr(value, "detach"):  # torch's; bfloat16 has no NumPy type
        value = value.detach().float().cpu().numpy()
    array = np.asarray(value)
    if array.dtype.kind != "f":
        raise Refused(f"{name} is of {array.dtype}, and weights are floats")
    return np.ascontiguousarray(array, "<f4")


def fitted(weights: Weights, expected: Sequence[Mapping[str, Any]], what: str) -> List["NDArray[Any]"]:
    """The tensors that a version must have, in its order and type, out of a state dict or a safetensors file.

    :param expected: the entries of a manifest to match
    :raises Refused: naming tensors that are missing, unexpected, of another shape or not finite
    """
    whole: Mapping[str, Any] = weights if isinstance(weights, Mapping) else safetensors(weights)
    given = _cut(whole, expected)
    due = {str(entry["name"]): entry for entry in expected}
    missing = [name for name in due if name not in given]
    if missing:
        raise Refused(f"{what} needs the tensors of the version before it, and these are missing: {_listed(missing)}")
    extra = [name for name in given if name not in due]
    tied = "model.embed_tokens.weight"
    if extra == ["lm_head.weight"] and tied in whole:  # a tied head appears under both names in state dicts
        head, embedding = as_float32("lm_head.weight", whole["lm_head.weight"]), as_float32(tied, whole[tied])
        if head.shape == embedding.shape and np.array_equal(head, embedding):
            extra = []
    if extra:
        raise Refused(f"{what} has the tensors of the version before it and no others, and these are too many: {_listed(extra)}")
    fitting: List[NDArray[Any]] = []
    for name, entry in due.items():
        array = as_float32(name, given[name])
        dims = tuple(int(n) for n in entry["dims"])
        if array.shape != dims:
            raise Refused(f"{name} has the shape {list(array.shape)}, and in the version before it {list(dims)}")
        finite = np.isfinite(array)
        if not finite.all():
            at = tuple(int(i) for i in np.argwhere(~finite)[0])
            raise Refused(f"{name}{list(at)} is {array[at]}, and {array.size - int(finite.sum())} of its {array.size} values are not "
                          "finite; nothing was published. A smaller learning rate, or a limit of the gradient's norm, may help")
        if entry["dtype"] == "BF16":
            fitting.append(to_bfloat16(array))
        else:
            fitting.append(array)
    return fitting


def _listed(names: Sequence[str]) -> str:
    return ", ".join(sorted(names)[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


class _Zstd:
    """zstd from the module zstandard or the system's library."""

    def __init__(self) -> None:
        self._module: Any = None
        self._library: Any = None
        try:
            import zstandard
            self._module = zstandard
        except ImportError:
            name = ctypes.util.find_library("zstd")
            if name is None:
                raise Missing("a version on the log is a delta, which is compressed with zstd, and there is neither the module "
                              "zstandard nor the library libzstd; install one, or run with weights.anchor_every=1") from None
            self._library = ctypes.CDLL(name)
            for function in ("ZSTD_decompress", "ZSTD_compress", "ZSTD_compressBound"):
                getattr(self._library, function).restype = ctypes.c_size_t

    def decompress(self, frame: memoryview, size: int) -> bytes:
        if self._module is not None:
            return bytes(self._module.ZstdDecompressor().decompress(frame, max_output_size=size))
        out = ctypes.create_string_buffer(size)
        found = self._library.ZSTD_decompress(out, ctypes.c_size_t(size), bytes(frame), ctypes.c_size_t(len(frame)))
        if found != size:
            raise Malformed(f"a block of a delta does not decompress to {size} bytes")
        return out.raw

    def compress(self, data: bytes) -> bytes:
        if self._module is not None:
            return bytes(self._module.ZstdCompressor(level=1).compress(data))
        bound = self._library.ZSTD_compressBound(ctypes.c_size_t(len(data)))
        out = ctypes.create_string_buffer(bound)
        size = self._library.ZSTD_compress(out, ctypes.c_size_t(bound), data, ctypes.c_size_t(len(data)), ctypes.c_int(1))
        return out.raw[:size]


_BLOCK_VALUES = 1 << 18
_INTEGERS = {2: ("<u2", "<i2", 15), 4: ("<u4", "<i4", 31)}


def apply_delta(base: "NDArray[Any]", delta: memoryview) -> bytearray:
    """Applies a delta to its base and returns the tensor's bytes.

    A delta has a value's bits minus the base's, as an integer of their width, zigzag, in byte planes with the highest first; each block of
    262,144 values is the length of a zstd frame (int32) and the frame.
    """
    zstd = _Zstd()
    unsigned, signed, top = _INTEGERS[base.itemsize]
    bits = np.ascontiguousarray(base).reshape(-1).view(unsigned)
    out = bytearray()
    at = 0
    for start in range(0, bits.size, _BLOCK_VALUES):
        block = bits[start:start + _BLOCK_VALUES]
        size = int.from_bytes(delta[at:at + 4], "little")
        if not 0 < size <= len(delta) - at - 4:
            raise Malformed(f"a block of a delta claims {size} bytes, and {max(0, len(delta) - at - 4)} are left")
        planes = np.frombuffer(zstd.decompress(delta[at + 4:at + 4 + size], block.size * base.itemsize), np.uint8)
        at += 4 + size
        # [planes, values], the highest first, to the bytes of each value, the lowest first
        zigzag = np.ascontiguousarray(planes.reshape(base.itemsize, block.size)[::-1].T).view(unsigned).reshape(-1)
        out += (block + ((zigzag >> 1) ^ -(zigzag & 1).astype(unsigned))).astype(unsigned).tobytes()
    if at != len(delta):
        raise Malformed(f"{len(delta) - at} bytes are left behind a delta's last block")
    return out


def make_delta(base: "NDArray[Any]", tensor: "NDArray[Any]") -> bytes:
    """Encodes the difference of two tensors for apply_delta."""
    zstd = _Zstd()
    unsigned, signed, top = _INTEGERS[base.itemsize]
    before = np.ascontiguousarray(base).reshape(-1).view(unsigned)
    after = np.ascontiguousarray(tensor).reshape(-1).view(unsigned)
    out = bytearray()
    for start in range(0, before.size, _BLOCK_VALUES):
        difference = (after[start:start + _BLOCK_VALUES] - before[start:start + _BLOCK_VALUES]).view(signed)
        zigzag = ((difference << 1) ^ (difference >> top)).view(unsigned)
        planes = zigzag.view(np.uint8).reshape(-1, base.itemsize)[:, ::-1].T
        frame = zstd.compress(planes.tobytes())
        out += len(frame).to_bytes(4, "little") + frame
    return bytes(out)
