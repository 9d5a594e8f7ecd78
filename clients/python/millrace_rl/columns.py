"""Reads many records of one schema column by column, so that a short record costs little Python.

Records that cannot be read so (an array in several blocks, invalid bytes) are left to the reader of single records, which reports errors.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Sequence, Tuple

import numpy as np
from numpy.typing import NDArray

from millrace_rl.avro import Schema
from millrace_rl.rows import Columns, Ints, Items, NotSideBySide

#: from (bytes, position in each record, results) to the position in each record after the field
Step = Callable[["NDArray[np.uint8]", Ints, Dict[str, Any]], Ints]

_MOST_ITEMS = 4096


class ColumnReader:
    """Reads records of a schema side by side.

    :param wanted: names of fields, those of nested records and of an array's items behind a dot. A field that the schema does not have
        is null everywhere.
    """

    def __init__(self, schema: Schema, node: Any, wanted: Sequence[str]):
        self._schema = schema
        self._wanted = frozenset(wanted)
        self._step = self._of(node, "")

    def read(self, data: bytes, begins: Ints, ends: Ints) -> Columns:
        """
        :param begins: where each record begins
        :param ends: where each must end
        :raises NotSideBySide: if they must be read one by one
        """
        found: Dict[str, Any] = {}
        try:
            stood = self._step(np.frombuffer(data, np.uint8), begins, found)
        except IndexError:
            raise NotSideBySide from None
        # positions only increase, so a reader that ends at the end has passed no earlier end
        if (stood != ends).any():
            raise NotSideBySide
        return Columns(data, len(begins), found)

    def _of(self, node: Any, name: str) -> Step:
        node = self._schema.resolve(node)
        kind = "union" if isinstance(node, list) else node if isinstance(node, str) else node["type"]
        made: Step = getattr(self, "_" + kind)(node, name)
        return made

    def _null(self, node: Any, name: str) -> Step:
        return lambda b, p, found: p

    def _long(self, node: Any, name: str) -> Step:
        if name not in self._wanted:
            return lambda b, p, found: _number(b, p)[1]

        def step(b: "NDArray[np.uint8]", p: Ints, found: Dict[str, Any]) -> Ints:
            n, p = _number(b, p)
            found[name] = (n >> 1 & 0x7FFFFFFFFFFFFFFF) ^ -(n & 1)
            return p
        return step

    _int = _enum = _long

    def _boolean(self, node: Any, name: str) -> Step:
        def step(b: "NDArray[np.uint8]", p: Ints, found: Dict[str, Any]) -> Ints:
            if len(p) and b.take(p).max() > 1:
                raise NotSideBySide
            return p + 1
        return step

    def _double(self, node: Any, name: str) -> Step:
        return self._real(name, 8)

    def _float(self, node: Any, name: str) -> Step:
        return self._real(name, 4)

    def _real(self, name: str, width: int) -> Step:
        if name not in self._wanted:
            return lambda b, p, found: p + width
        columns = np.arange(width)

        def step(b: "NDArray[np.uint8]", p: Ints, found: Dict[str, Any]) -> Ints:
            found[name] = b.take(p[:, None] + columns).view(f"<f{width}").reshape(-1).astype(np.float64)
            return p + width
        return step

    def _string(self, node: Any, name: str) -> Step:
        logical = node.get("logicalType", "") if isinstance(node, dict) else ""
        whole = 6 if logical in ("packed-int32", "packed-float32") and name in self._wanted else 0
        keep = name in self._wanted

        def step(b: "NDArray[np.uint8]", p: Ints, found: Dict[str, Any]) -> Ints:
            n, p = _number(b, p)
            bits = _any(n)
            # the lowest bit says that a length is negative; whole values are of 4 bytes
            if bits & (1 | whole) or bits < 0 or bits >> 1 > len(b) and int(n.max()) >> 1 > len(b):
                raise NotSideBySide
            q: Ints = p + (n >> 1)
            if keep:
                found[name] = p, q
            return q
        return step

    _bytes = _string

    def _fixed(self, node: Any, name: str) -> Step:
        size = int(node["size"])
        return lambda b, p, found: p + size

    def _union(self, node: Any, name: str) -> Step:
        steps = [self._of(branch, name) for branch in node]
        null = node.index("null") if "null" in node else -1
        keep = name in self._wanted

        def step(b: "NDArray[np.uint8]", p: Ints, found: Dict[str, Any]) -> Ints:
            n, p = _number(b, p)
            if not len(n):
                return p
            bits = _any(n)
            if bits & 1 or bits < 0 or bits >> 1 >= len(steps) and int(n.max()) >> 1 >= len(steps):
                raise NotSideBySide
            if np.bitwise_and.reduce(n) == bits:  # all are of one branch
                if bits >> 1 == null:
                    return p
                p = steps[bits >> 1](b, p, found)
                if keep and name not in found:
                    found[name] = np.ones(len(p), np.bool_)
                return p
            there = np.zeros(len(p), np.bool_)
            p = p.copy()
            for i in np.unique(n).tolist():
                if i >> 1 == null:
                    continue
                rows = np.flatnonzero(n == i)
                inner: Dict[str, Any] = {}
                p[rows] = steps[i >> 1](b, p[rows], inner)
                there[rows] = True
                for each, column in inner.items():
                    _scatter(found, each, column, rows, len(p))
            if keep and name not in found:
                found[name] = there
            return p
        return step

    def _array(self, node: Any, name: str) -> Step:
        return self._blocks([self._of(node["items"], name)], name)

    def _map(self, node: Any, name: str) -> Step:
        return self._blocks([self._of("string", ""), self._of(node["values"], "")], "")

    def _blocks(self, steps: List[Step], name: str) -> Step:
        below = [each for each in self._wanted if name and each.startswith(name + ".")]

        def step(b: "NDArray[np.uint8]", p: Ints, found: Dict[str, Any]) -> Ints:
            counts, p = _number(b, p)
            if not len(counts):
                return p
            most = int(counts.max()) >> 1
            bits = _any(counts)
            if bits & 1 or bits < 0 or most > _MOST_ITEMS:
                raise NotSideBySide  # a negative count is followed by the block's size
            counts >>= 1
            items: List[Tuple[Ints, Dict[str, Any]]] = []
            rows = np.arange(len(p))
            at = p
            p = p.copy()
            for k in range(most):
                if k or not counts.all():
                    chosen = np.flatnonzero(counts > k)
                    if len(chosen) < len(rows) or not k:
                        rows = chosen
                    at = p[rows]
                inner: Dict[str, Any] = {}
                for each in steps:
                    at = each(b, at, inner)
                p[rows] = at
                items.append((rows, inner))
            some = np.flatnonzero(counts) if not counts.all() else None
            ends, behind = _number(b, p if some is None else p[some])
            if len(ends) and (ends.min() != 0 or ends.max() != 0):
                raise NotSideBySide
            if below:
                _together(found, items, counts, below)
            if some is None:
                return behind
            p[some] = behind
            return p
        return step

    def _record(self, node: Any, name: str) -> Step:
        steps = [self._of(field["type"], f"{name}.{field['name']}" if name else field["name"]) for field in node["fields"]]

        def step(b: "NDArray[np.uint8]", p: Ints, found: Dict[str, Any]) -> Ints:
            for each in steps:
                p = each(b, p, found)
            return p
        return step


def _any(n: Ints) -> int:
    """The bits that any of the numbers has."""
    return int(np.bitwise_or.reduce(n))


def _number(b: "NDArray[np.uint8]", p: Ints) -> Tuple[Ints, Ints]:
    """The zigzag of a number of each record, and where each stands behind it."""
    first = b.take(p)
    n = first.astype(np.int64)
    p = p + 1
    if not len(n) or np.maximum.reduce(first) < 128:
        return n, p
    n &= 127
    rows, shift = np.flatnonzero(first > 127), 7
    while len(rows):
        if shift > 56:
            raise NotSideBySide
        if len(rows) == len(p):
            more = b.take(p)
            n |= (more & 127).astype(np.int64) << shift
            p += 1
        else:
            at = p[rows]
            more = b.take(at)
            n[rows] |= (more & 127).astype(np.int64) << shift
            p[rows] = at + 1
        if more.max() < 128:
            break
        rows = rows[more > 127]
        shift += 7
    return n, p


def _scatter(found: Dict[str, Any], name: str, column: Any, rows: Ints, count: int) -> None:
    """Spreads values of some records over all."""
    if isinstance(column, Items):
        raise NotSideBySide
    if isinstance(column, tuple):
        if name not in found:
            found[name] = np.full(count, -1), np.full(count, -1)
        for whole, part in zip(found[name], column):
            whole[rows] = part
    else:
        if name not in found:
            found[name] = np.zeros(count, column.dtype)
        found[name][rows] = column


def _together(found: Dict[str, Any], items: List[Tuple[Ints, Dict[str, Any]]], counts: Ints, names: List[str]) -> None:
    """Reorders items, read as the first of each record, then the second, record by record."""
    if not items:
        found.update({name: Items(np.zeros(0, np.int64), counts) for name in names})
        return
    order = np.argsort(np.concatenate([rows for rows, _ in items]), kind="stable") if len(items) > 1 else None
    for name in names:
        columns = [inner[name] for _, inner in items if isinstance(inner.get(name), np.ndarray)]
        if len(columns) < len(items):
            raise NotSideBySide
        found[name] = Items(columns[0] if order is None else np.concatenate(columns)[order], counts)
