"""Avro's binary encoding, by writers that are compiled from a schema. They write what the readers of avro.py read."""

from __future__ import annotations

import struct
from collections.abc import Mapping  # typing's is slow in isinstance
from typing import Any, Callable, Collection, Dict, List, Optional, Tuple

import numpy as np

from millrace_rl.avro import PACKED, Schema
from millrace_rl.errors import Malformed, Refused

Writer = Callable[[bytearray, Any], None]


#: numbers of up to two bytes, the length of most vectors
_SHORT = [bytes([n]) for n in range(128)] + [bytes([n & 127 | 128, n >> 7]) for n in range(128, 16384)]


def _number(value: int) -> bytes:
    n = (value << 1) ^ (value >> 63)
    if n < 16384:
        return _SHORT[n]
    if n < 2097152:
        return bytes((n & 127 | 128, n >> 7 & 127 | 128, n >> 14))
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def _put_number(out: bytearray, value: int) -> None:
    out += _number(value)


def packed_bytes(value: Any, logical: str, where: str) -> bytes:
    """A vector's bytes, from an array, a sequence of numbers, or packed bytes."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    if hasattr(value, "detach"):  # torch's
        value = value.detach().cpu().numpy()
    array = np.asarray(value)
    dtype = PACKED[logical]
    if array.size == 0:
        return b""
    if array.ndim != 1:
        raise Refused(f"{where} is a vector, one number for each token, and this has the shape {array.shape}")
    if dtype.kind == "i":
        if array.dtype.kind not in "iub":
            raise Refused(f"{where} holds whole numbers, and this is of {array.dtype}")
        limits = np.iinfo(dtype)
        if array.max() > limits.max or array.min() < limits.min:
            raise Refused(f"{where} holds numbers from {limits.min} to {limits.max}, and this has {array.min()} to {array.max()}")
    elif array.dtype.kind not in "iubf":
        raise Refused(f"{where} holds numbers, and this is of {array.dtype}")
    data: bytes = np.ascontiguousarray(array, dtype).tobytes()
    return data


class _Writers:
    def __init__(self, schema: Schema):
        self.schema = schema

    def of(self, node: Any, where: str) -> Writer:
        node = self.schema.resolve(node)
        kind = "union" if isinstance(node, list) else node if isinstance(node, str) else node["type"]
        writer: Writer = getattr(self, "_" + kind)(node, where)
        return writer

    def _null(self, node: Any, where: str) -> Writer:
        def write(out: bytearray, value: Any) -> None:
            if value is not None:
                raise Refused(f"{where} must be None, not {value!r}")
        return write

    def _boolean(self, node: Any, where: str) -> Writer:
        def write(out: bytearray, value: Any) -> None:
            if not isinstance(value, (bool, np.bool_)):
                raise Refused(f"{where} must be True or False, not {value!r}")
            out.append(1 if value else 0)
        return write

    def _whole(self, bits: int, where: str) -> Writer:
        low, high = -(1 << bits - 1), (1 << bits - 1) - 1

        def write(out: bytearray, value: Any) -> None:
            if type(value) is not int and (isinstance(value, (bool, np.bool_)) or not isinstance(value, np.integer)) or not low <= value <= high:
                raise Refused(f"{where} must be a whole number from {low} to {high}, not {value!r}")
            _put_number(out, int(value))
        return write

    def _int(self, node: Any, where: str) -> Writer:
        return self._whole(32, where)

    def _long(self, node: Any, where: str) -> Writer:
        return self._whole(64, where)

    def _real(self, layout: str, where: str) -> Writer:
        pack = struct.Struct(layout).pack

        def write(out: bytearray, value: Any) -> None:
            if type(value) is not float and (isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating))):
                raise Refused(f"{where} must be a number, not {value!r}")
            out += pack(float(value))
        return write

    def _float(self, node: Any, where: str) -> Writer:
        return self._real("<f", where)

    def _double(self, node: Any, where: str) -> Writer:
        return self._real("<d", where)

    def _string(self, node: Any, where: str) -> Writer:
        def write(out: bytearray, value: Any) -> None:
            if not isinstance(value, str):
                raise Refused(f"{where} must be text, not {value!r}")
            data = value.encode()
            _put_number(out, len(data))
            out += data
        return write

    def _bytes(self, node: Any, where: str) -> Writer:
        logical = node.get("logicalType") if isinstance(node, dict) else None

        def write(out: bytearray, value: Any) -> None:
            if type(value) is bytes:
                pass
            elif logical in PACKED:
                value = packed_bytes(value, logical, where)
            elif not isinstance(value, (bytes, bytearray, memoryview)):
                raise Refused(f"{where} must be bytes, not {type(value).__name__}")
            _put_number(out, len(value))
            out += value
        return write

    def _enum(self, node: Any, where: str) -> Writer:
        indices = {symbol: i for i, symbol in enumerate(node["symbols"])}

        def write(out: bytearray, value: Any) -> None:
            if value not in indices:
                raise Refused(f"{where} must be one of {', '.join(indices)}, not {value!r}")
            _put_number(out, indices[value])
        return write

    def _union(self, node: Any, where: str) -> Writer:
        empty = [i for i, branch in enumerate(node) if branch == "null"]
        others = [(i, self.of(branch, where)) for i, branch in enumerate(node) if branch != "null"]
        if len(others) != 1:
            raise Malformed(f"{where} may be of several kinds, which no record of Millrace's has")
        index, other = others[0]

        def write(out: bytearray, value: Any) -> None:
            if value is None and empty:
                _put_number(out, empty[0])
            else:
                _put_number(out, index)
                other(out, value)
        return write

    def _array(self, node: Any, where: str) -> Writer:
        item = self.of(node["items"], where + "[]")

        def write(out: bytearray, value: Any) -> None:
            if isinstance(value, (str, bytes, Mapping)) or not hasattr(value, "__len__"):
                raise Refused(f"{where} must be a list, not {value!r}")
            if len(value):
                _put_number(out, len(value))
                for each in value:
                    item(out, each)
            out.append(0)
        return write

    def _map(self, node: Any, where: str) -> Writer:
        item, key = self.of(node["values"], where + ".*"), self._string("string", where + "'s key")

        def write(out: bytearray, value: Any) -> None:
            if not isinstance(value, Mapping):
                raise Refused(f"{where} must be a dict, not {value!r}")
            if value:
                _put_number(out, len(value))
                for name, each in value.items():
                    key(out, name)
                    item(out, each)
            out.append(0)
        return write

    def _record(self, node: Any, where: str) -> Writer:
        fields = self.fields(node, where)
        prefix, names = where + "." if where else "", {name for name, *_ in fields}

        def write(out: bytearray, value: Any) -> None:
            if type(value) is Encoded:
                out += value
                return
            if not isinstance(value, Mapping):
                raise Refused(f"{where or node['name']} must be a dict, not {value!r}")
            unknown = set(value) - names
            if unknown:
                raise Refused(f"a {node['name']} has no field {', '.join(sorted(unknown))}; its fields are {', '.join(sorted(names))}")
            for name, field, optional, default in fields:
                if name not in value and not optional:
                    raise Refused(f"a {node['name']} needs the field {prefix}{name}")
                field(out, value.get(name, default))
        return write

    def fields(self, node: Any, where: str) -> List[Tuple[str, Writer, bool, Any]]:
        """Of a record, in order: name, writer, whether there is a default, and the default."""
        prefix = where + "." if where else ""
        return [(f["name"], self.of(f["type"], prefix + f["name"]), "default" in f, f.get("default")) for f in node["fields"]]


def compiled_writer(schema: Schema) -> Callable[[Mapping[str, Any]], bytes]:
    """A function from a record to its bytes. Fields that have a default may be absent. Raises Refused, naming the field."""
    write = _Writers(schema).of(schema.root, "")

    def encode(record: Mapping[str, Any]) -> bytes:
        out = bytearray()
        write(out, record)
        return bytes(out)

    return encode


class Encoded(bytes):
    """A record's bytes, or a field's as :meth:`PartialWriter.field` makes them; writers of records take them for the value."""


class PartialWriter:
    """Writes records that differ in some fields only; the others are encoded once. The bytes are those of :func:`compiled_writer`.

    :param fixed: fields that all records share; others except `varying` have their default
    :param varying: fields that each record gives, all of them; as values or :class:`Encoded`
    :param record: name of a record within the schema, in place of its root
    :param head: what the bytes begin with
    """

    def __init__(self, schema: Schema, fixed: Mapping[str, Any], varying: Collection[str], record: Optional[str] = None, head: bytes = b""):
        node = schema.resolve(schema.root if record is None else record)
        fields = _Writers(schema).fields(node, "")
        unknown = {*fixed, *varying} - {name for name, *_ in fields}
        if unknown:
            raise Refused(f"a {node['name']} has no field {', '.join(sorted(unknown))}; its fields are "
                          f"{', '.join(sorted(name for name, *_ in fields))}")
        self._writers = {name: write for name, write, *_ in fields}
        kinds = {field["name"]: schema.resolve(field["type"]) for field in node["fields"]}
        self._lines = ["def encode(record):", " parts = []", " put = parts.append"]
        self._names: Dict[str, Any] = {"Encoded": Encoded, "number": _number, "join": b"".join}
        before = bytearray(head)
        for name, write, optional, default in fields:
            if name in varying:
                self._compile(name, bytes(before), _before_bytes(schema, kinds[name]), kinds[name])
                before.clear()
            elif name in fixed or optional:
                write(before, fixed.get(name, default))
            else:
                raise Refused(f"a {node['name']} needs the field {name}")
        self._names["tail"] = bytes(before)
        self._lines += [" put(tail)", " return join(parts)"]
        exec(compile("\n".join(self._lines), f"<writer of {node['name']}>", "exec"), self._names)
        self._encode: Callable[[Mapping[str, Any]], bytes] = self._names["encode"]

    def _compile(self, name: str, before: bytes, before_bytes: Optional[bytes], node: Any) -> None:
        """Adds the lines that write a field: for its usual values, else by its writer."""
        i, empty = len(self._lines), self._empty(name)
        self._names.update({f"before{i}": before, f"write{i}": self._writers[name]})
        cases = {"kind is Encoded": [f"put(before{i})", "put(value)"]}
        if before_bytes is not None:
            self._names[f"bytes{i}"] = before + before_bytes
            cases["kind is bytes"] = [f"put(bytes{i} + number(len(value)))", "put(value)"]
        elif node in ("int", "long"):
            cases["kind is int and 0 <= value < 1048576"] = [f"put(before{i} + number(value))"]
        elif node == "string" or isinstance(node, dict) and node["type"] == "string":
            cases["kind is str"] = ["value = value.encode()", f"put(before{i} + number(len(value)))", "put(value)"]
        if empty is not None:
            self._names[f"empty{i}"] = before + empty
            cases["value is None"] = [f"put(empty{i})"]
        self._lines += [f" value = record[{name!r}]", " kind = type(value)"]
        for at, (case, body) in enumerate(reversed(cases.items())):  # Encoded is the rarest
            self._lines += [f" {'elif' if at else 'if'} {case}:", *(f"  {line}" for line in body)]
        self._lines += [" else:", f"  out = bytearray(before{i})", f"  write{i}(out, value)", "  put(out)"]

    def field(self, name: str, value: Any) -> Encoded:
        """The bytes of a field's value, for records that share it."""
        out = bytearray()
        self._writers[name](out, value)
        return Encoded(out)

    def _empty(self, name: str) -> Optional[bytes]:
        """None's bytes, where a field may be None."""
        try:
            return self.field(name, None)
        except Refused:
            return None

    def __call__(self, record: Mapping[str, Any]) -> bytes:
        return self._encode(record)


def _before_bytes(schema: Schema, node: Any) -> Optional[bytes]:
    """What stands before the length of a field of bytes: a union's branch, or nothing; None for other fields."""
    for i, branch in enumerate(node if isinstance(node, list) else [node]):
        branch = schema.resolve(branch)
        if (branch if isinstance(branch, str) else branch["type"]) == "bytes":
            return _SHORT[2 * i] if isinstance(node, list) else b""
    return None
