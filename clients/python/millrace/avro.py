"""Avro's binary encoding, by readers and writers that are compiled from a schema.

A record is a dict. A vector (bytes of the logical types ``packed-int8``, ``packed-int32``, ``packed-float32``) is a NumPy array
that looks at the record's own bytes: nothing is copied, and the array is read-only. Enums are their symbols, maps are dicts.

The schema is the writer's. A field that it does not have is absent from the dict, unless it is asked for by name: then it is None.
"""

from __future__ import annotations

import json
import struct
from typing import Any, Callable, Collection, Dict, List, Mapping, Optional, Tuple

import numpy as np

from millrace.errors import Malformed, Refused

Record = Dict[str, Any]
Reader = Callable[..., Record]
#: (bytes, position of an array) to where its items begin and the last ends, and the position behind it; None to look for them one by one
PlacesOf = Callable[[bytes, int], Optional[Tuple[Any, int]]]
Writer = Callable[[bytearray, Any], None]

PACKED: Dict[str, "np.dtype[Any]"] = {"packed-int8": np.dtype("i1"), "packed-int32": np.dtype("<i4"), "packed-float32": np.dtype("<f4")}
_SHIFT = {"packed-int8": 0, "packed-int32": 2, "packed-float32": 2}
_PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")


class Schema:
    """An Avro schema with its named types.

    :param text: JSON, or what JSON was read to
    :param known: named types of other files, by full name; those of this schema are added
    """

    def __init__(self, text: Any, known: Optional[Dict[str, Any]] = None):
        self.root = json.loads(text) if isinstance(text, (str, bytes)) else text
        self.named: Dict[str, Any] = {} if known is None else known
        self._collect(self.root, "")

    def _collect(self, node: Any, namespace: str) -> None:
        if isinstance(node, list):
            for branch in node:
                self._collect(branch, namespace)
        elif isinstance(node, dict):
            if node["type"] in ("record", "enum", "fixed"):
                namespace = node.get("namespace", namespace)
                self.named[node["name"]] = self.named[f"{namespace}.{node['name']}"] = node
            for field in node.get("fields", ()):
                self._collect(field["type"], namespace)
            for inner in ("items", "values"):
                if inner in node:
                    self._collect(node[inner], namespace)
            if isinstance(node["type"], (dict, list)):
                self._collect(node["type"], namespace)

    def resolve(self, node: Any) -> Any:
        """The type itself, where it is named: a name of a primitive, a dict, or the list of a union's branches."""
        if isinstance(node, str) and node not in _PRIMITIVES:
            if node not in self.named:
                raise Malformed(f"a schema names the type {node}, which it does not have")
            return self.named[node]
        if isinstance(node, dict) and (isinstance(node["type"], (dict, list)) or node["type"] in self.named):
            return self.resolve(node["type"])
        return node

    @property
    def name(self) -> str:
        """Of the record, without its namespace."""
        return str(self.root["name"])

    @property
    def fields(self) -> List[Mapping[str, Any]]:
        """Of the record."""
        return list(self.root["fields"])


class _Source:
    """Lines of a reader. Everything is inlined: a call for each field would cost more than reading it."""

    def __init__(self, schema: Schema, skipped: Collection[str], placed: Collection[str],
                 places_of: Optional[Callable[[Schema, Any], Optional[PlacesOf]]]):
        self.places_of = places_of
        self.schema = schema
        self.skipped = skipped
        self.placed = placed
        self.lines: List[str] = []
        self.symbols: Dict[str, Any] = {}
        self.count = 0

    def fresh(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def add(self, indent: int, *lines: str) -> None:
        self.lines += [" " * indent + line for line in lines]

    def number(self, indent: int) -> None:
        """n: the zigzag of a number."""
        # two bytes at once, the length of most vectors, need no call
        self.add(indent, "n = b[p]; p += 1", "if n > 127:", " n += (b[p] << 7) - 128; p += 1", " if n > 16383: n, p = more(b, p, n)")

    def length(self, indent: int) -> None:
        """q: the end of what begins at p with its length."""
        self.number(indent)
        self.add(indent, "q = p + (n >> 1)", "if n & 1 or q > end: bad(p, n)")

    def read(self, node: Any, to: Optional[str], indent: int) -> None:
        """Reads a value to a variable, or passes over it where `to` is None."""
        node = self.schema.resolve(node)
        kind = "union" if isinstance(node, list) else node if isinstance(node, str) else node["type"]
        getattr(self, "_" + kind)(node, to, indent)

    def _null(self, node: Any, to: Optional[str], indent: int) -> None:
        self.add(indent, f"{to} = None" if to else "pass")

    def _boolean(self, node: Any, to: Optional[str], indent: int) -> None:
        self.add(indent, "if b[p] > 1: bad(p, b[p])")
        if to:
            self.add(indent, f"{to} = b[p] == 1")
        self.add(indent, "p += 1")

    def _long(self, node: Any, to: Optional[str], indent: int) -> None:
        if to:
            self.number(indent)
            self.add(indent, f"{to} = (n >> 1) ^ -(n & 1)")
        else:
            self.add(indent, "while b[p] > 127: p += 1", "p += 1")

    _int = _long

    def _double(self, node: Any, to: Optional[str], indent: int) -> None:
        if to:
            self.add(indent, f"{to} = double(b, p)[0]")
        self.add(indent, "p += 8")

    def _float(self, node: Any, to: Optional[str], indent: int) -> None:
        if to:
            self.add(indent, f"{to} = single(b, p)[0]")
        self.add(indent, "p += 4")

    def _string(self, node: Any, to: Optional[str], indent: int) -> None:
        self.length(indent)
        if to:
            self.add(indent, f"{to} = b[p:q].decode()")
        self.add(indent, "p = q")

    def _bytes(self, node: Any, to: Optional[str], indent: int) -> None:
        self.length(indent)
        packed = node.get("logicalType") if isinstance(node, dict) else None
        if to and packed in PACKED:
            shift = _SHIFT[packed]
            self.symbols[packed.replace("-", "_")] = PACKED[packed]
            if shift:
                self.add(indent, f"if (q - p) & {(1 << shift) - 1}: bad(p, n)")
            view = f"vector(b, {packed.replace('-', '_')}, (q - p) >> {shift}, p)"
            self.add(indent, f"{to} = {view} if arrays else m[p:q]")
        elif to:
            self.add(indent, f"{to} = m[p:q]")
        self.add(indent, "p = q")

    def _enum(self, node: Any, to: Optional[str], indent: int) -> None:
        self.number(indent)
        self.add(indent, f"if n & 1 or n >> 1 >= {len(node['symbols'])}: bad(p, n)")
        if to:
            name = "symbols_" + node["name"]
            self.symbols[name] = tuple(node["symbols"])
            self.add(indent, f"{to} = {name}[n >> 1]")

    def _fixed(self, node: Any, to: Optional[str], indent: int) -> None:
        if to:
            self.add(indent, f"{to} = m[p:p + {node['size']}]")
        self.add(indent, f"p += {node['size']}")

    def _union(self, node: Any, to: Optional[str], indent: int) -> None:
        self.number(indent)
        for i, branch in enumerate(node):
            self.add(indent, f"{'elif' if i else 'if'} n == {2 * i}:")
            self.read(branch, to, indent + 1)
        self.add(indent, "else: bad(p, n)")

    def _blocks(self, indent: int) -> int:
        self.add(indent, "while True:")
        self.number(indent + 1)
        self.add(
            indent + 1,
            "if n == 0: break",
            "c = (n >> 1) ^ -(n & 1)",
            "if c < 0:",
            " c = -c",
            " while b[p] > 127: p += 1",
            " p += 1",
            "if c > end - p: bad(p, n)",
            "for _ in range(c):",
        )
        return indent + 2

    def _array(self, node: Any, to: Optional[str], indent: int) -> None:
        item = self.fresh() if to else None
        if to:
            self.add(indent, f"{to} = []")
        inner = self._blocks(indent)
        self.read(node["items"], item, inner)
        if to:
            self.add(inner, f"{to}.append({item})")

    def _places(self, node: Any, to: str, indent: int) -> None:
        """Where each item of an array begins, and where the last ends."""
        items = self.schema.resolve(node)["items"]
        find = None if self.places_of is None else self.places_of(self.schema, items)
        if find is not None:
            self.symbols["places_" + to] = find
            self.add(indent, f"found = places_{to}(b, p)", f"if found: {to}, p = found", "else:")
            indent += 1
        self.add(indent, f"{to} = []")
        inner = self._blocks(indent)
        self.add(inner, f"{to}.append(p)")
        self.read(items, None, inner)
        self.add(indent, f"{to}.append(p - 1)")

    def _map(self, node: Any, to: Optional[str], indent: int) -> None:
        key, item = (self.fresh(), self.fresh()) if to else (None, None)
        if to:
            self.add(indent, f"{to} = {{}}")
        inner = self._blocks(indent)
        self.read("string", key, inner)
        self.read(node["values"], item, inner)
        if to:
            self.add(inner, f"{to}[{key}] = {item}")

    def _record(self, node: Any, to: Optional[str], indent: int, wanted: Optional[Collection[str]] = None) -> None:
        parts = []
        there = set()
        for field in node["fields"]:
            keep = to is not None and (wanted is None or field["name"] in wanted) and f"{node['name']}.{field['name']}" not in self.skipped
            part = self.fresh() if keep else None
            if part and f"{node['name']}.{field['name']}" in self.placed:
                self._places(field["type"], part, indent)
            else:
                self.read(field["type"], part, indent)
            if keep:
                parts.append(f"{field['name']!r}: {part}")
                there.add(field["name"])
        parts += [f"{name!r}: None" for name in wanted or () if name not in there]
        if to:
            self.add(indent, f"{to} = {{{', '.join(parts)}}}")


def _more(b: bytes, p: int, n: int) -> Tuple[int, int]:
    """The rest of a number whose first two bytes, the second of which does not end it, give n."""
    value, shift = n - 16384, 14
    while shift < 64:
        n = b[p]
        p += 1
        value |= (n & 127) << shift
        if n < 128:
            return value, p
        shift += 7
    raise ValueError("a number is longer than 64 bits")


def _bad(p: int, n: int) -> None:
    raise ValueError(f"the number {(n >> 1) ^ -(n & 1)} before byte {p} is none that can stand there")


def compiled_reader(schema: Schema, fields: Optional[Collection[str]] = None, skipped: Collection[str] = (),
                    placed: Collection[str] = (), places_of: Optional[Callable[[Schema, Any], Optional[PlacesOf]]] = None) -> Reader:
    """A function (bytes, position=0, arrays=True) to a record.

    :param fields: names of those that are wanted; None for all. The others are passed over.
    :param skipped: fields of any record that are not wanted, such as ``BatchEntry.masked_by``
    :param placed: arrays of which only is wanted where their items begin, and where the last ends, such as ``LearnerBatch.entries``
    :param places_of: gives for a schema and the type of an array's items what finds such items quicker, if anything does

    With arrays=False vectors are memoryviews of their bytes. It throws Malformed where the bytes are no such record.
    """
    source = _Source(schema, skipped, placed, places_of)
    source.add(0, "def read(b, p=0, arrays=True):")
    source.add(1, "m = memoryview(b)", "end = len(b)")
    source.add(1, "try:")
    source._record(schema.resolve(schema.root), "record", 2, fields)
    source.add(
        1,
        "except (IndexError, ValueError, error) as e:",
        " raise Malformed(f'these {end} bytes are no ' + name + f': {e or type(e).__name__}') from None",
        "if p != end:",
        " raise Malformed(f'these {end} bytes are no ' + name + f': it ends at byte {p}')",
        "return record",
    )
    scope: Dict[str, Any] = {
        "more": _more, "bad": _bad, "Malformed": Malformed, "error": struct.error, "vector": np.frombuffer, "name": schema.name,
        "double": struct.Struct("<d").unpack_from, "single": struct.Struct("<f").unpack_from, **source.symbols,
    }
    exec(compile("\n".join(source.lines), f"<reader of {schema.name}>", "exec"), scope)
    read: Reader = scope["read"]
    return read


def _put_number(out: bytearray, value: int) -> None:
    n = (value << 1) ^ (value >> 63)
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)


def packed_bytes(value: Any, logical: str, where: str) -> bytes:
    """A vector's bytes: of an array, a sequence of numbers, or what has been packed already."""
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
            if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)) or not low <= value <= high:
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
            if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
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
            if logical in PACKED:
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
        prefix = where + "." if where else ""
        fields = [(f["name"], self.of(f["type"], prefix + f["name"]), "default" in f, f.get("default")) for f in node["fields"]]
        names = {f["name"] for f in node["fields"]}

        def write(out: bytearray, value: Any) -> None:
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


def compiled_writer(schema: Schema) -> Callable[[Mapping[str, Any]], bytes]:
    """A function from a record to its bytes. Fields that have a default may be absent. It throws Refused, naming the field."""
    write = _Writers(schema).of(schema.root, "")

    def encode(record: Mapping[str, Any]) -> bytes:
        out = bytearray()
        write(out, record)
        return bytes(out)

    return encode
