"""A run's tables, read without a broker."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import weakref
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Union

import numpy as np
from numpy.typing import NDArray

from millrace_rl.errors import MillraceError, NoSuchRun, Refused
from millrace_rl.table import Table

PathLike = Union[str, "os.PathLike[str]"]

_PARQUET = ".parquet"


class RecordedRun:
    """The tables of a run as they were when it was opened: :meth:`Run.open` makes one.

    Their columns are described in docs/how-to/export.md. One row each: of :meth:`rollouts` a rollout with its outcome, of
    :meth:`tokens` a response token with its log-probs, of :meth:`steps` a learner step with its figures.

    :ivar folder: of ``rollouts.parquet``, ``tokens.parquet`` and ``steps.parquet``, for pandas, DuckDB or Polars; removed with this
        object unless they were there before
    """

    def __init__(self, path: PathLike, millrace: Optional[PathLike] = None):
        self._path = Path(path)
        if (self._path / f"rollouts{_PARQUET}").is_file():
            self.folder = self._path
            return
        if (self._path / "index.json").is_file():
            options = ["--archive", str(self._path.absolute())]
        elif (self._path / "config.yaml").is_file():
            options = ["--run-dir", str(self._path.absolute())]
        else:
            raise NoSuchRun(f"{path} holds no run: it has no config.yaml of a run's folder, index.json of an archive or rollouts{_PARQUET} of an "
                            "export; give a folder such as runs/my-run")
        command = _command(millrace)
        _parquet()
        self.folder = Path(tempfile.mkdtemp(prefix="millrace-"))
        weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        try:
            ended = subprocess.run([command, "export", *options, "--parquet", "--to", str(self.folder)], stdin=subprocess.DEVNULL,
                                   capture_output=True, text=True)
        except OSError as e:
            raise MillraceError(f"{path} cannot be read: {command} does not start ({e.strerror}); give the launcher of a checkout with "
                                "millrace= or MILLRACE") from None
        if ended.returncode != 0:
            said = [line for line in ended.stderr.splitlines() if line.strip()]
            raise MillraceError(f"{path} cannot be read: {said[-1] if said else f'{command} ended with {ended.returncode}'}")

    def rollouts(self, fields: Optional[Sequence[str]] = None) -> Table:
        """Every rollout with its outcome, in batch order; those without a batch come first.

        :param fields: only these columns, which is faster
        """
        return self._table("rollouts", fields)

    def tokens(self, fields: Optional[Sequence[str]] = None) -> Table:
        """Every response token, in the order of the rollouts."""
        return self._table("tokens", fields)

    def steps(self, fields: Optional[Sequence[str]] = None) -> Table:
        """Every learner step."""
        return self._table("steps", fields)

    def _table(self, name: str, fields: Optional[Sequence[str]]) -> Table:
        parquet = _parquet()
        file = self.folder / (name + _PARQUET)
        try:
            known = parquet.read_schema(file).names
            unknown = [field for field in fields or () if field not in known]
            if unknown:
                raise Refused(f"{name} have no column {', '.join(unknown)}; they have {', '.join(known)}")
            read = parquet.read_table(file, columns=None if fields is None else list(fields))
        except OSError as e:
            raise MillraceError(f"{file} cannot be read: {e}; export the run again") from None
        return Table.of_columns({column: _array(read.column(column)) for column in read.column_names}, read.num_rows)

    def __repr__(self) -> str:
        return f"RecordedRun {self._path}, tables in {self.folder}"


def _array(column: Any) -> NDArray[Any]:
    if str(column.type).startswith("map"):
        return _objects([None if pairs is None else dict(pairs) for pairs in column.to_pylist()])
    if str(column.type).startswith("list"):
        return _objects([None if values is None else np.array(values, np.int32) for values in column.to_pylist()])
    if str(column.type) == "string":
        return _objects(column.to_pylist())
    array: NDArray[Any] = column.to_numpy()
    return array


def _objects(values: List[Any]) -> NDArray[Any]:
    array = np.empty(len(values), object)
    for i, value in enumerate(values):
        array[i] = value
    return array


def _parquet() -> Any:
    try:
        from pyarrow import parquet
    except ModuleNotFoundError:
        raise MillraceError("a run's tables are read with pyarrow, which is not installed; 'pip install pyarrow', or write them with "
                            "'./millrace export --parquet' and read them with DuckDB or Polars") from None
    return parquet


def _command(given: Optional[PathLike]) -> str:
    """The launcher: as given, by the environment, of the checkout around this folder or this package, or on the path."""
    named = given or os.environ.get("MILLRACE")
    if named:
        return os.fspath(named)
    for place in (Path.cwd(), *Path.cwd().parents, *Path(__file__).resolve().parents):
        if (place / "millrace").is_file() and (place / "mvnw").is_file():
            return str(place / "millrace")
    found = shutil.which("millrace")
    if found is None:
        raise MillraceError("there is no millrace here to read a run with; give the launcher of a checkout with millrace= or MILLRACE, or write "
                            "the tables there with './millrace export --parquet --to tables' and open that folder")
    return found
