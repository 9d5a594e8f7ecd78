"""Fields of many records as columns, independent of their reader."""

from __future__ import annotations

import importlib
from functools import cached_property
from typing import Any, Callable, Dict, List, Protocol, Sequence, Tuple

import numpy as np
from numpy.typing import NDArray

from millrace_rl.avro import Record

#: millrace_rl._records; None if it was not compiled
compiled: Any
try:
    compiled = importlib.import_module("millrace_rl._records")
except ImportError:
    compiled = None

Ints = NDArray[np.int64]
#: used instead of a row, as in _records.c
ALL_FIT, ABSENT = -1, -2
_NO_RANGES = np.zeros(0, np.int64)


class NotSideBySide(Exception):
    """The records must be read one by one."""


class Rows(Protocol):
    """Fields of records, each as a column. Names of nested fields are joined by dots."""

    def __len__(self) -> int: ...

    def numbers(self, name: str) -> "NDArray[Any]":
        """int64 or float64. For a field of array items: those of all records, concatenated."""

    def there(self, name: str) -> "NDArray[np.bool_]":
        """Where the field is not null."""

    def lengths(self, name: str) -> Ints:
        """In bytes; -1 where it is null."""

    def vectors(self, name: str) -> List[Any]:
        """Bytes of each record's; None where it is null."""

    def texts(self, name: str) -> List[bytes]:
        """In UTF-8."""

    def packed_texts(self, name: str) -> Tuple[Ints, "NDArray[np.uint8]"]:
        """Size of each in bytes, and all bytes."""

    def unlike(self, name: str, lengths: Ints, width: int) -> int:
        """The first row that has not ``lengths << width`` bytes; ALL_FIT if none, ABSENT if one is null."""

    def all_are(self, name: str, text: bytes) -> bool:
        """Whether every record has this text there."""

    def joined(self, names: Sequence[str], dtype: Any) -> "NDArray[Any]":
        """Concatenates vectors that every record has, record by record; with several names, a record's vectors follow each other."""

    def of(self, rows: Ints) -> "Rows":
        """Some of them, in that order."""


class SingleRows:
    """Records that were read one by one, as dicts."""

    def __init__(self, records: Sequence[Record]):
        self._records = records

    def __len__(self) -> int:
        return len(self._records)

    def _values(self, name: str) -> List[Any]:
        found: List[Any] = list(self._records)
        for part in name.split("."):
            found = [None if each is None else each.get(part) for each in found]
        return found

    def numbers(self, name: str) -> "NDArray[Any]":
        first, _, rest = name.partition(".")
        values = [item[rest] for r in self._records for item in r[first]] if rest else [r[first] for r in self._records]
        return np.array(values, np.float64 if values and isinstance(values[0], float) else np.int64)

    def there(self, name: str) -> "NDArray[np.bool_]":
        return np.array([value is not None for value in self._values(name)], np.bool_)

    def lengths(self, name: str) -> Ints:
        return np.array([-1 if value is None else len(value) for value in self._values(name)], np.int64)

    def vectors(self, name: str) -> List[Any]:
        return self._values(name)

    def texts(self, name: str) -> List[bytes]:
        return [value.encode() for value in self._values(name)]

    def packed_texts(self, name: str) -> Tuple[Ints, "NDArray[np.uint8]"]:
        texts = self.texts(name)
        return np.array(list(map(len, texts)), np.int64), joined(texts, np.uint8)

    def unlike(self, name: str, lengths: Ints, width: int) -> int:
        return _unlike(self.lengths(name), lengths, width)

    def all_are(self, name: str, text: bytes) -> bool:
        return all(each == text for each in self.texts(name))

    def joined(self, names: Sequence[str], dtype: Any) -> "NDArray[Any]":
        return joined([each for together in zip(*map(self.vectors, names)) for each in together], dtype)

    def of(self, rows: Ints) -> "SingleRows":
        return SingleRows([self._records[row] for row in rows.tolist()])


class Columns:
    """Records read column by column: numbers, and positions of other values in the bytes.

    :param found: by name a column of numbers, of truths, or (begins, ends) in the bytes, which are -1 where there is none
    """

    def __init__(self, data: bytes, rows: int, found: Dict[str, Any]):
        self._data = data
        self._rows = rows
        self._found = found

    def __len__(self) -> int:
        return self._rows

    def _column(self, name: str) -> Any:
        """None where no record has the field."""
        return self._found.get(name)

    def numbers(self, name: str) -> "NDArray[Any]":
        found = self._column(name)
        numbers: NDArray[Any] = found.values if isinstance(found, Items) else found
        return numbers

    def there(self, name: str) -> "NDArray[np.bool_]":
        found = self._column(name)
        if found is None:
            return np.zeros(self._rows, np.bool_)
        there: NDArray[np.bool_] = found[0] >= 0 if isinstance(found, tuple) else found
        return there

    def lengths(self, name: str) -> Ints:
        found = self._column(name)
        if found is None:
            return np.full(self._rows, -1)
        begins, ends = found
        lengths: Ints = ends - begins - (begins < 0)
        return lengths

    def vectors(self, name: str) -> List[Any]:
        found = self._column(name)
        if found is None:
            return [None] * self._rows
        begins, ends = found
        data = self._data
        return [data[p:q] if p >= 0 else None for p, q in zip(begins.tolist(), ends.tolist())]

    def texts(self, name: str) -> List[bytes]:
        return self.vectors(name)

    def packed_texts(self, name: str) -> Tuple[Ints, "NDArray[np.uint8]"]:
        return self.lengths(name), self.joined((name,), np.uint8)

    def unlike(self, name: str, lengths: Ints, width: int) -> int:
        if compiled is None:
            return _unlike(self.lengths(name), lengths, width)
        found = self._column(name)
        return ABSENT if found is None else int(compiled.unlike(*found, lengths, width))

    def alike(self, name: str, other: "Columns") -> bool:
        """Whether the texts are those of the other's rows."""
        return bool(compiled.same(self._data, *self._column(name), other._data, *other._column(name)))

    def all_are(self, name: str, text: bytes) -> bool:
        begins, ends = self._column(name)
        if compiled is not None:
            return bool(compiled.same(self._data, begins, ends, text, _NO_RANGES, _NO_RANGES))
        if (ends - begins != len(text)).any():
            return False
        bytes_of = np.frombuffer(self._data, np.uint8).take(begins[:, None] + np.arange(len(text)))
        return bool((bytes_of == np.frombuffer(text, np.uint8)).all())

    def joined(self, names: Sequence[str], dtype: Any) -> "NDArray[Any]":
        if compiled is None:
            return joined([each for together in zip(*map(self.vectors, names)) for each in together], dtype)
        return np.frombuffer(compiled.gather(self._data, *[edge for name in names for edge in self._column(name)]), dtype)

    def of(self, rows: Ints) -> "Columns":
        some = _slice(rows)
        found: Dict[str, Any] = {}
        for name, column in self._found.items():
            if isinstance(column, Items):
                found[name] = column.of(some)
            else:
                found[name] = tuple([each[some] for each in column]) if isinstance(column, tuple) else column[some]
        return Columns(self._data, len(rows), found)


class Table(Columns):
    """Columns that are rows of one matrix: some records of it are one slice.

    :param table: [columns][records]; of numbers, of the bits of reals, of truths, or of begins and behind them ends
    :param cut: by name what makes the column of a matrix
    :param found: numbers of array items
    """

    def __init__(self, data: bytes, table: Ints, cut: Dict[str, Callable[[Ints], Any]], found: Dict[str, Any]):
        super().__init__(data, table.shape[1], found)
        self._table = table
        self._cut = cut

    def _column(self, name: str) -> Any:
        cut = self._cut.get(name)
        return self._found.get(name) if cut is None else cut(self._table)

    def of(self, rows: Ints) -> "Table":
        some = _slice(rows)
        table = self._table[:, some] if isinstance(some, slice) else self._table.take(some, 1)  # whose rows are contiguous
        return Table(self._data, table, self._cut, {name: items.of(some) for name, items in self._found.items()})


def _slice(rows: Ints) -> Any:
    """Consecutive rows, as most batches have them, as a slice, which copies nothing."""
    if len(rows) and int(rows[-1]) - int(rows[0]) == len(rows) - 1 and (rows[1:] > rows[:-1]).all():
        return slice(int(rows[0]), int(rows[-1]) + 1)
    return rows


class JoinedRows:
    """Concatenates rows."""

    def __init__(self, parts: Sequence[Rows]):
        self._parts = parts

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def numbers(self, name: str) -> "NDArray[Any]":
        return np.concatenate([part.numbers(name) for part in self._parts])

    def there(self, name: str) -> "NDArray[np.bool_]":
        return np.concatenate([part.there(name) for part in self._parts])

    def lengths(self, name: str) -> Ints:
        return np.concatenate([part.lengths(name) for part in self._parts])

    def vectors(self, name: str) -> List[Any]:
        return [each for part in self._parts for each in part.vectors(name)]

    def texts(self, name: str) -> List[bytes]:
        return [each for part in self._parts for each in part.texts(name)]

    def packed_texts(self, name: str) -> Tuple[Ints, "NDArray[np.uint8]"]:
        lengths, texts = zip(*(part.packed_texts(name) for part in self._parts))
        return np.concatenate(lengths), np.concatenate(texts)

    def unlike(self, name: str, lengths: Ints, width: int) -> int:
        return _unlike(self.lengths(name), lengths, width)

    def all_are(self, name: str, text: bytes) -> bool:
        return all(part.all_are(name, text) for part in self._parts)

    def joined(self, names: Sequence[str], dtype: Any) -> "NDArray[Any]":
        return np.concatenate([part.joined(names, dtype) for part in self._parts])

    def of(self, rows: Ints) -> "Rows":
        starts = np.cumsum([0, *map(len, self._parts)])
        parts = np.searchsorted(starts, rows, "right") - 1
        edges = [0, *(np.flatnonzero(np.diff(parts)) + 1).tolist(), len(rows)]
        return JoinedRows([self._parts[parts[i]].of(rows[i:j] - starts[parts[i]]) for i, j in zip(edges, edges[1:]) if j > i])


class Items:
    """Numbers of array items by record, and their count per record."""

    def __init__(self, values: "NDArray[Any]", counts: Ints):
        self.values = values
        self.counts = counts

    @cached_property
    def ends(self) -> Ints:
        ends: Ints = self.counts.cumsum()
        return ends

    def of(self, rows: Any) -> "Items":
        counts = self.counts[rows]
        if isinstance(rows, slice):
            return Items(self.values[int(self.ends[rows.start]) - int(counts[0]):int(self.ends[rows.stop - 1])], counts)
        first = np.cumsum(counts) - counts
        at = np.arange(int(counts.sum())) + np.repeat(self.ends[rows] - counts - first, counts)
        return Items(self.values[at], counts)


def same_texts(one: Rows, other: Rows, name: str) -> bool:
    """Whether both have the same texts, row by row."""
    if compiled is not None and isinstance(one, Columns) and isinstance(other, Columns):
        return one.alike(name, other)
    (lengths, texts), (other_lengths, other_texts) = one.packed_texts(name), other.packed_texts(name)
    return np.array_equal(lengths, other_lengths) and np.array_equal(texts, other_texts)


def _unlike(found: Ints, lengths: Ints, width: int) -> int:
    if (found < 0).any():
        return ABSENT
    wrong = np.flatnonzero(found != lengths << width)
    return int(wrong[0]) if len(wrong) else ALL_FIT


def joined(vectors: Sequence[Any], dtype: Any) -> "NDArray[Any]":
    """Bytes as one array, which may be written to."""
    return np.frombuffer(bytearray().join(vectors), dtype)
