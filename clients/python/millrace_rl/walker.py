"""Compiled counterpart of columns.py, if built: a program made from the schema walks the records one by one."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import numpy as np

from millrace_rl import rows
from millrace_rl.avro import PlacesOf, Schema
from millrace_rl.rows import Columns, Ints, Items, NotSideBySide, Table

# as in _records.c
_NOTHING, _LONG, _BOOLEAN, _SKIP, _REAL, _BYTES, _UNION, _ARRAY, _MAP, _RECORD = range(10)
_NUMBERS, _REALS, _RANGES, _THERE, _COUNTS = range(5)
_CUTS: Dict[int, Callable[[int], Callable[[Ints], Any]]] = {
    _NUMBERS: lambda at: lambda table: table[at], _REALS: lambda at: lambda table: table[at].view(np.float64),
    _RANGES: lambda at: lambda table: (table[at], table[at + 1]), _THERE: lambda at: lambda table: table[at] != 0}


def places_of(schema: Schema, node: Any) -> Optional[PlacesOf]:
    """Finds the items of an array; None without compiled code."""
    try:
        return Walker(schema, node, ()).places()
    except NotCompiled:
        return None


class NotCompiled(Exception):
    """There is no program for the wanted fields, or no compiled code."""


class Walker:
    """Reads records of a schema into columns.

    :param wanted: as of :class:`millrace_rl.columns.ColumnReader`
    :raises NotCompiled: if that must be used instead
    """

    def __init__(self, schema: Schema, node: Any, wanted: Sequence[str]):
        if rows.compiled is None:
            raise NotCompiled
        self._schema = schema
        self._wanted = frozenset(wanted)
        self._code: List[int] = []
        self._columns: Dict[str, Tuple[int, int]] = {}  # by name its kind and where it is
        self._width = 0
        self._unions = 0  # around what is read now
        self._optional: Dict[int, int] = {}  # columns that a record may leave as they are, and what they are then
        self._items: Dict[str, Tuple[int, str]] = {}  # by name its place among the items, and its array
        self._of(node, "", "")
        self._program = np.array(self._code, np.int32)
        self._cut = {name: _CUTS[kind](at) for name, (kind, at) in self._columns.items() if kind in _CUTS}

    def read(self, data: bytes, begins: Ints, ends: Ints) -> Columns:
        """
        :param begins: where each record begins
        :param ends: where each must end
        :raises NotSideBySide: if they must be read one by one
        """
        table = np.empty((self._width, len(begins)), np.int64)
        for column, value in self._optional.items():
            table[column] = value
        items = rows.compiled.read(data, np.ascontiguousarray(begins, np.int64), np.ascontiguousarray(ends, np.int64), self._program, table,
                              len(self._items))
        if items is None:
            raise NotSideBySide
        return Table(data, table, self._cut, {name: Items(np.frombuffer(items[place], np.int64), table[self._columns[array][1]])
                                              for name, (place, array) in self._items.items()})

    def places(self) -> PlacesOf:
        """Function from (bytes, array position) to the positions where each item begins and the last ends, and the position after the
        array; None if items must be searched one by one."""
        program = self._program

        def found(data: bytes, position: int) -> Optional[Tuple[Ints, int]]:
            there = rows.compiled.places(data, position, program)
            return None if there is None else (np.frombuffer(there[0], np.int64), there[1])
        return found

    def _column(self, name: str, kind: int, width: int = 1) -> int:
        if name not in self._columns:
            self._columns[name] = kind, self._width
            if self._unions or kind == _THERE:
                self._optional.update(dict.fromkeys(range(self._width, self._width + width), -1 if kind == _RANGES else 0))
            self._width += width
        elif self._columns[name][0] != kind:
            raise NotCompiled  # different branches of a union
        return self._columns[name][1]

    def _of(self, node: Any, name: str, array: str) -> int:
        node = self._schema.resolve(node)
        kind = "union" if isinstance(node, list) else node if isinstance(node, str) else node["type"]
        at = len(self._code)
        make: Callable[[Any, str, str], None] = getattr(self, "_" + kind)
        make(node, name, array)
        return at

    def _wants(self, name: str, array: str) -> bool:
        """Whether it is a wanted field of the record itself; array items have numbers only."""
        if name in self._wanted and array:
            raise NotCompiled
        return name in self._wanted

    def _null(self, node: Any, name: str, array: str) -> None:
        self._code.append(_NOTHING)

    def _long(self, node: Any, name: str, array: str) -> None:
        if name in self._wanted and array:
            place = self._items.setdefault(name, (len(self._items), array))[0]
            self._code += [_LONG, -1, place]
        else:
            self._code += [_LONG, self._column(name, _NUMBERS) if name in self._wanted else -1, -1]

    _int = _enum = _long

    def _boolean(self, node: Any, name: str, array: str) -> None:
        if name in self._wanted:
            raise NotCompiled
        self._code.append(_BOOLEAN)

    def _double(self, node: Any, name: str, array: str) -> None:
        self._real(name, array, 8)

    def _float(self, node: Any, name: str, array: str) -> None:
        self._real(name, array, 4)

    def _real(self, name: str, array: str, width: int) -> None:
        self._code += [_REAL, width, self._column(name, _REALS)] if self._wants(name, array) else [_SKIP, width]

    def _string(self, node: Any, name: str, array: str) -> None:
        if self._wants(name, array):
            logical = node.get("logicalType", "") if isinstance(node, dict) else ""
            column = self._column(name, _RANGES, 2)
            # the lowest bit says that a length is negative; whole values are of 4 bytes
            self._code += [_BYTES, 7 if logical in ("packed-int32", "packed-float32") else 1, column, column + 1]
        else:
            self._code += [_BYTES, 1, -1, -1]

    _bytes = _string

    def _fixed(self, node: Any, name: str, array: str) -> None:
        if name in self._wanted:
            raise NotCompiled
        self._code += [_SKIP, int(node["size"])]

    def _union(self, node: Any, name: str, array: str) -> None:
        if array and any(each == name or each.startswith(name + ".") for each in self._wanted):
            raise NotCompiled  # not every item has it
        at = len(self._code)
        self._code += [_UNION, len(node), node.index("null") if "null" in node else -1, -1] + [0] * len(node)
        self._unions += 1
        for i, branch in enumerate(node):
            self._code[at + 4 + i] = self._of(branch, name, array)
        self._unions -= 1
        if name in self._wanted and name not in self._columns:
            self._code[at + 3] = self._column(name, _THERE)

    def _array(self, node: Any, name: str, array: str) -> None:
        below = bool(name) and any(each.startswith(name + ".") for each in self._wanted)
        if name in self._wanted or below and array:
            raise NotCompiled
        at = len(self._code)
        self._code += [_ARRAY, self._column(name, _COUNTS) if below else -1, 0]
        self._code[at + 2] = self._of(node["items"], name, name if below else array)

    def _map(self, node: Any, name: str, array: str) -> None:
        if name in self._wanted:
            raise NotCompiled
        at = len(self._code)
        self._code += [_MAP, -1, 0]
        self._code[at + 2] = self._of(node["values"], "\0", "")  # an unwanted name

    def _record(self, node: Any, name: str, array: str) -> None:
        at = len(self._code)
        fields = node["fields"]
        self._code += [_RECORD, len(fields)] + [0] * len(fields)
        for i, each in enumerate(fields):
            self._code[at + 2 + i] = self._of(each["type"], f"{name}.{each['name']}" if name else each["name"], array)
