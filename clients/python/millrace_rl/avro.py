"""Avro's binary encoding, by readers that are compiled from a schema; avro_writer.py has the writers.

A record is a dict. A vector (bytes of the logical types ``packed-int8``, ``packed-int32``, ``packed-float32``) is a read-only NumPy view of
the record's bytes. Enums are their symbols, maps are dicts.

The schema is the writer's. A field that it lacks is absent from the dict, or None if requested by name.
"""

from __future__ import annotations

import json
import struct
from typing import Any, Callable, Collection, Dict, List, Mapping, Optional, Tuple

import numpy as np

from millrace_rl.errors import Malformed

Record = Dict[str, Any]
Reader = Callable[..., Record]
#: (bytes, position of an array) to where its items begin and the last ends, and the position behind it; None to look for them one by one
PlacesOf = Callable[[bytes, int], Optional[Tuple[Any, int]]]

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
        """Reads a value to a variable, or skips it if `to` is None."""
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
    """Reads the rest of a number whose first two bytes give n."""
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

    :param fields: names of wanted fields; None for all. Others are skipped.
    :param skipped: unwanted fields of any record, such as ``BatchEntry.masked_by``
    :param placed: arrays to locate without decoding: where each begins and the last ends, such as ``LearnerBatch.entries``
    :param places_of: returns a faster item finder for a schema and an array's item type, if there is one

    With arrays=False vectors are memoryviews of their bytes. Raises Malformed if the bytes are not such a record.
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
