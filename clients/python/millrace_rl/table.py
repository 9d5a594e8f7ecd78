"""Records as columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Dict, Iterator, List

import numpy as np
from numpy.typing import NDArray

from millrace_rl.avro import Record

if TYPE_CHECKING:
    import pandas


class Table(Mapping):  # type: ignore[type-arg]
    """Column name to array, one element for each record.

    Numbers are int64, float64 or bool arrays; where one is absent in some record, the column is of floats with NaN, or of objects with
    None. A vector is an array within a column of objects, a view of the record's bytes. Fields of nested records have a dot:
    ``sampling.temperature``. Lists and maps are columns of objects.

    ``partition``, ``offset`` and ``timestamp_ms`` say where on the log each record of a topic is.
    """

    def __init__(self, records: List[Record]):
        self._columns: Dict[str, NDArray[Any]] = {}
        rows = [_flat(record) for record in records]
        names: Dict[str, None] = {}
        for row in rows:
            names.update(dict.fromkeys(row))
        for name in names:
            self._columns[name] = _column([row.get(name) for row in rows])
        self._length = len(records)

    @classmethod
    def of_columns(cls, columns: Mapping[str, NDArray[Any]], rows: int) -> "Table":  # type: ignore[type-arg]
        """Creates a table of existing columns with one element per row."""
        table = cls([])
        table._columns, table._length = dict(columns), rows
        return table

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    @property
    def rows(self) -> int:
        """Number of records."""
        return self._length

    def __repr__(self) -> str:
        return f"Table of {self.rows} records: {', '.join(self._columns)}"

    def to_pandas(self) -> "pandas.DataFrame":
        """The same as a DataFrame."""
        import pandas

        return pandas.DataFrame({name: list(column) if column.dtype == object else column for name, column in self._columns.items()})


def _flat(record: Record, prefix: str = "") -> Record:
    flat: Record = {}
    for name, value in record.items():
        # a map with user keys stays one column
        if isinstance(value, dict) and not name.endswith(("components", "metadata", "controls", "metrics", "topics", "began_at", "values")):
            flat.update(_flat(value, f"{prefix}{name}."))
        else:
            flat[prefix + name] = value
    return flat


def _column(values: List[Any]) -> NDArray[Any]:
    kinds = {type(value) for value in values}
    for kind, dtype in ((bool, np.bool_), (int, np.int64), (float, np.float64)):
        if kinds == {kind}:
            return np.array(values, dtype)
    if kinds <= {int, float, type(None)} and float in kinds:
        return np.array([np.nan if value is None else value for value in values], np.float64)
    column = np.empty(len(values), object)
    for i, value in enumerate(values):
        column[i] = value
    return column
