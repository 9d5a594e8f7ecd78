"""Copies a run's curves to MLflow or Weights & Biases: ``python3 -m millrace_rl.track wandb runs/my-run --follow``.

It reads the event files that Millrace writes for TensorBoard, so names and numbers agree. Each folder of event files becomes a run of the
tracker: one for the steps, and one per set of held-out prompts, with the version as step.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import re
import struct
import sys
import time
from itertools import chain
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional, Tuple, Union

from millrace_rl.errors import MillraceError, NoSuchRun

PathLike = Union[str, "os.PathLike[str]"]

_EVENTS = "events.out.tfevents."
_LOCK = "writer.lock"
_HELD_OUT = "held-out-"
_LOGGED = "millrace.step"
_RUN = "millrace.run"
_METRICS_AT_ONCE = 999  # MLflow takes 1000 metrics, params and tags at once; one tag goes with them
_PARAMS_AT_ONCE = 100
_PARAM_CHARACTERS = 500  # the least that a release of MLflow takes


class Row(NamedTuple):
    """A step or an evaluation."""

    step: int
    seconds: float  # Unix time
    values: Dict[str, float]


class Curves:
    """A folder of event files. :meth:`rows` returns each row once, also while the folder is written."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._read: Dict[Path, int] = {}
        self.is_held_out = folder.name.startswith(_HELD_OUT)
        self.group = (folder.parent if self.is_held_out else folder).name
        self.name = f"{self.group}-{folder.name}" if self.is_held_out else self.group

    def rows(self) -> Iterator[Row]:
        for file in sorted(self._folder.glob(_EVENTS + "*")):  # their names are in the order in which they were written
            with open(file, "rb") as data:
                data.seek(self._read.get(file, 0))
                while True:
                    head = data.read(12)
                    length = int.from_bytes(head[:8], "little")
                    record = data.read(length + 4) if len(head) == 12 else b""
                    if len(record) < length + 4 or not head:
                        break  # a record that is being written, or that a killed process left unfinished
                    self._read[file] = data.tell()
                    row = _row(record[:-4])
                    if row is not None:
                        yield row

    def is_written(self) -> bool:
        """Returns True while a process of the run holds the folder's lock."""
        try:
            with open(self._folder / _LOCK, "rb") as lock:
                fcntl.lockf(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
        return False


def _row(event: bytes) -> Optional[Row]:
    """Decodes TensorBoard's message Event: wall time (1), step (2), and a summary (5) of values (1), each with a tag (1) and a number (2)."""
    step, seconds, values = 0, 0.0, {}
    for number, value in _fields(event):
        if number == 1:
            seconds = struct.unpack("<d", value)[0]
        elif number == 2:
            step = value
        elif number == 5:
            for _, curve in _fields(value):
                parts = dict(_fields(curve))
                values[parts[1].decode()] = struct.unpack("<f", parts[2])[0]
    return Row(step, seconds, values) if values else None


def _fields(message: bytes) -> Iterator[Tuple[int, Any]]:
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(message):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        else:
            length = {1: 8, 5: 4}.get(key & 7) or varint()
            yield key >> 3, message[at:at + length]
            at += length


class _MlflowRun:
    """A run of MLflow. One tag identifies it; another records the last complete step, so that a lost request is repeated."""

    def __init__(self, curves: Curves, first: Row, config: Dict[str, Any]):
        mlflow = _module("mlflow.entities")
        self._curves, self._entities, self._client = curves, mlflow.entities, mlflow.MlflowClient()
        experiment = mlflow.set_experiment(os.environ.get("MLFLOW_EXPERIMENT_NAME", "millrace")).experiment_id
        found = self._client.search_runs([experiment], f"tags.`{_RUN}` = '{curves.name}'", max_results=1)
        tags = {_RUN: curves.name, "millrace.group": curves.group}
        run = found[0] if found else self._client.create_run(experiment, start_time=_ms(first), tags=tags, run_name=curves.name)
        self._id, self._end = run.info.run_id, _ms(first)
        self.last = int(run.data.tags.get(_LOGGED, -1))
        if self.last < 0:
            params = [self._entities.Param(_mlflow_name(key), value[:_PARAM_CHARACTERS]) for key, value in _flat(config)]
            for at in range(0, len(params), _PARAMS_AT_ONCE):
                self._client.log_batch(self._id, params=params[at:at + _PARAMS_AT_ONCE])

    def log(self, rows: Iterable[Row]) -> None:
        metrics: List[Any] = []
        complete = self.last
        for row in rows:
            self._end = _ms(row)
            if row.step <= complete:
                continue
            if len(metrics) + len(row.values) > _METRICS_AT_ONCE:
                self._send(metrics, complete)
                metrics = []
            metrics += [self._entities.Metric(_mlflow_name(name), value, _ms(row), row.step) for name, value in row.values.items()]
            complete = row.step
        self._send(metrics, complete)

    def _send(self, metrics: List[Any], complete: int) -> None:
        if not metrics:
            return
        for at in range(0, len(metrics), _METRICS_AT_ONCE):
            is_whole = at + _METRICS_AT_ONCE >= len(metrics)
            tags = [self._entities.RunTag(_LOGGED, str(complete))] if is_whole else []
            self._client.log_batch(self._id, metrics=metrics[at:at + _METRICS_AT_ONCE], tags=tags)
        self.last = complete

    def close(self) -> None:
        if not self._curves.is_written():
            self._client.set_terminated(self._id, "FINISHED", self._end)


class _WandbRun:
    """A run of Weights & Biases. Offline, a file in each part records its last step, since no server knows it."""

    def __init__(self, curves: Curves, first: Row, config: Dict[str, Any]):
        wandb = _module("wandb")
        self._run = wandb.init(
            project=os.environ.get("WANDB_PROJECT", "millrace"), id=curves.name, name=curves.name, group=curves.group, config=config,
            job_type="evaluate" if curves.is_held_out else "train", resume=None if os.environ.get("WANDB_MODE") == "offline" else "allow",
            reinit="create_new")
        self.last = self._run.step - 1
        if self._run.offline:
            for logged in Path(self._run.settings.wandb_dir).glob(f"offline-run-????????_??????-{curves.name}/{_LOGGED}"):
                self.last = max(self.last, int(logged.read_text()))

    def log(self, rows: Iterable[Row]) -> None:
        for row in rows:
            if row.step > self.last:
                self._run.log({**row.values, "_timestamp": row.seconds}, step=row.step)
                self.last = row.step
        if self._run.offline:
            Path(self._run.settings.sync_dir, _LOGGED).write_text(str(self.last))

    def close(self) -> None:
        self._run.finish()


_TRACKERS = {"mlflow": _MlflowRun, "wandb": _WandbRun}


def track(tracker: str, path: PathLike, *, follow: bool = False, config: Optional[PathLike] = None, every_s: float = 5.0) -> Dict[str, int]:
    """Copies the steps and evaluations that the tracker lacks.

    The tracker's environment variables apply: ``MLFLOW_TRACKING_URI``, ``MLFLOW_EXPERIMENT_NAME``, ``WANDB_MODE=offline``, ``WANDB_PROJECT``.
    The experiment or project is ``millrace`` by default.

    :param tracker: ``mlflow`` or ``wandb``
    :param path: a run's folder, or the directory of ``metrics.tensorboard.directory``
    :param follow: continue until the run ends
    :param config: YAML file to record as the configuration; default: config.yaml of the run's folder
    :param every_s: poll interval with `follow`
    :return: last step of each run of the tracker
    :raises NoSuchRun: if the folder has no event files
    """
    root = Path(path)
    file = Path(config) if config is not None else root / "config.yaml"
    root = root / "curves" if (root / "curves").is_dir() else root
    known: Dict[Path, Curves] = {}
    runs: Dict[Path, Any] = {}
    try:
        while True:
            for folder in sorted(lock.parent for lock in root.rglob(_LOCK)):
                known.setdefault(folder, Curves(folder))
            live = follow and any(curves.is_written() for curves in known.values())  # before reading, so that the last pass reads everything
            for folder, curves in known.items():
                rows = curves.rows()
                first = next(rows, None)
                if first is None:
                    continue
                if folder not in runs:
                    runs[folder] = _TRACKERS[tracker](curves, first, _yaml(file) if config is not None or file.is_file() else {})
                runs[folder].log(chain([first], rows))
            if not live:
                break
            time.sleep(every_s)
    finally:
        for run in runs.values():
            run.close()
    if not runs:
        raise NoSuchRun(f"cannot track {path}: it has no steps in TensorBoard's event files; give the folder of a run of './millrace train' or the "
                        "directory of metrics.tensorboard.directory, after the first step")
    return {known[folder].name: run.last for folder, run in runs.items()}


def _ms(row: Row) -> int:
    return round(row.seconds * 1000)


def _mlflow_name(name: str) -> str:
    """Replaces what MLflow refuses; ``@`` as verl does."""
    return re.sub(r"[^\w/. -]", "_", name.replace("@", "_at_"))


def _flat(config: Any, prefix: str = "") -> Iterator[Tuple[str, str]]:
    for key, value in config.items():
        if isinstance(value, dict) and value:
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value if isinstance(value, str) else json.dumps(value, default=str)


def _module(name: str) -> Any:
    try:
        return __import__(name)
    except ModuleNotFoundError as e:
        raise MillraceError(f"cannot import {name}: there is no module {e.name}; 'pip install {name.partition('.')[0]}'") from None


def _yaml(file: Path) -> Dict[str, Any]:
    try:
        import yaml

        with open(file, encoding="utf-8") as text:
            return dict(yaml.safe_load(text))
    except ModuleNotFoundError:
        raise MillraceError(f"{file} is read with PyYAML, which is not installed; 'pip install pyyaml'") from None
    except OSError as e:
        raise MillraceError(f"{file} cannot be read: {e.strerror}; give a YAML file") from None


def main() -> None:
    parser = argparse.ArgumentParser(prog="python3 -m millrace_rl.track", description="Copies a run's curves to MLflow or Weights & Biases.")
    parser.add_argument("tracker", choices=sorted(_TRACKERS))
    parser.add_argument("path", help="a run's folder, or the directory of metrics.tensorboard.directory")
    parser.add_argument("--follow", action="store_true", help="continue until the run ends")
    parser.add_argument("--config", help="YAML file to record as the configuration; default: config.yaml of the run's folder")
    given = parser.parse_args()
    try:
        for name, last in track(given.tracker, given.path, follow=given.follow, config=given.config).items():
            print(f"{given.tracker} has {name} up to step {last}")
    except MillraceError as e:
        sys.exit(f"millrace_rl.track: {e}")
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
