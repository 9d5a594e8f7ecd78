"""Records the steps of another system's trainer for analysis with Millrace."""

from __future__ import annotations

import atexit
import json
import math
import os
import threading
import time
from collections import deque
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Callable, Deque, Dict, List, Mapping, NamedTuple, Optional, Protocol, Sequence, Tuple, Union

import numpy as np
from numpy.typing import NDArray

from millrace_rl.avro import Record
from millrace_rl.avro_writer import Encoded, PartialWriter
from millrace_rl.errors import NotCommitted, Refused, TakenOver, Uncertain
from millrace_rl.kafka import TopicPartition
from millrace_rl.log import LOG, partition_of
from millrace_rl.producing import Offsets, Transactions
from millrace_rl.recorded import PathLike
from millrace_rl.run import Run
from millrace_rl.settings import Client

#: per token of the response, as in docs/how-to/records.md
_LOG_PROBS = ("behavior_log_probs", "proximal_log_probs", "old_log_probs", "reference_log_probs", "teacher_log_probs")
_FLOATS = (*_LOG_PROBS, "entropies", "squared_probabilities", "values", "token_rewards", "advantages")
_INTS = ("versions", "turns", "response_tokens")
_PER_TOKEN = ("mask", *_FLOATS, *_INTS)
_NUMBERS = ("reward", "advantage", "temperature", "greedy_reward", "age_ms")
_TEXTS = ("group", "id", "finish_reason")
_KNOWN = {"prompt_tokens", "turn_rewards", "reward_components", "version", *_PER_TOKEN, *_NUMBERS, *_TEXTS}
_NEEDED = ("mask", "behavior_log_probs", "proximal_log_probs", "reward")
_MASK = "mask must be 0 or 1 for each response token, and there must be one"
#: a log-prob of a certain token may exceed 0 by rounding
_ROUNDING = 1e-5

Row = Dict[str, Any]
Batch = Union[Sequence[Mapping[str, Any]], Mapping[str, Any]]


class _Step(NamedTuple):
    version: int
    batch: Union[Row, List[Row]]
    figures: Dict[str, float]
    bytes: int


class _Sink(Protocol):
    def write(self, step: _Step, sequences: "_Sequences") -> bool:
        """Records a step atomically; False if it is already recorded."""

    def close(self) -> None: ...


class Recorder:
    """Records the input of each step of a trainer, one call per step.

    >>> recorder = Recorder("kafka:9092", "its-run")       # or Recorder(directory="recorded"): files for 'millrace import --records'
    >>> recorder.step(rows, version=step, figures={"loss": loss})

    A thread writes. :meth:`step` copies the batch and returns; it neither waits nor raises. A step that does not fit into the memory, is
    malformed or cannot be written is dropped: `dropped` counts it, `last_error` says why, and the first one logs a warning. A step is
    recorded once: another call with its version only counts as `repeated`. On a cluster a step is one transaction, of the rollouts, their
    scores and trajectories, the batch and the training log's record; there, so is a call with a version below the newest recorded one.

    With `strict`, :meth:`step` writes before it returns, and raises. Call it on one rank, from one thread. :meth:`close` writes what is
    pending; it also runs at the interpreter's exit.

    :param bootstrap_servers: bootstrap servers, ``host:port``, separated by commas
    :param run_id: of a run that `millrace learn --first-version --set run.recorded=true` created
    :param directory: folder for one file per step, in place of a cluster
    :param client: settings of Kafka's clients, as of :class:`Run`; so are `registry` and `prefix`
    :param max_pending_mb: memory for steps that are not written yet
    :param timeout_s: longest wait of the thread for an answer, and of :meth:`close`
    :ivar recorded: steps that are recorded
    :ivar repeated: steps that were recorded before
    :ivar dropped: steps that are not recorded
    :ivar last_error: why the last dropped step was dropped
    """

    def __init__(self, bootstrap_servers: str = "", run_id: Optional[str] = None, *, directory: Optional[PathLike] = None, client: Client = None,
                 registry: Optional[str] = None, prefix: Optional[str] = None, strict: bool = False, max_pending_mb: int = 256,
                 timeout_s: float = 30.0):
        if (directory is None) == (run_id is None):
            raise Refused("a recorder writes to a run or to files; give either bootstrap_servers and run_id, or directory")
        self._sink: _Sink
        if directory is not None:
            self._sink = _Files(Path(directory))
        else:
            self._sink = _Log(lambda: Run(bootstrap_servers, run_id, client=client, registry=registry, prefix=prefix, timeout_s=timeout_s))
        self._strict = strict
        self._most = max_pending_mb << 20
        self._timeout_s = timeout_s
        self.recorded = self.repeated = self.dropped = 0
        self.last_error: Optional[Exception] = None
        self._pending: Deque[_Step] = deque()
        self._bytes = 0
        self._changed = threading.Condition()
        self._is_closed = False
        self._writer: Optional[threading.Thread] = None
        atexit.register(self.close)

    def step(self, batch: Batch, *, version: int, figures: Optional[Mapping[str, float]] = None) -> None:
        """Records one step.

        :param batch: a mapping per sequence with the fields of docs/how-to/records.md except `step`; or one mapping of padded columns,
            `[B, L]` arrays or tensors and `[B]` numbers. There the trailing zeros of `mask` are padding, and `prompt_mask` says where
            `prompt_tokens` are none
        :param version: of the weights at the start of the step: 0, 1, 2 and so on. What a sequence was sampled by is its own `version`
        :param figures: numbers of the step by name, such as loss and gradient norm
        """
        try:
            with self._changed:
                if self._is_closed:
                    raise Refused("the recorder is closed; make a new one")
            step = _copied(batch, version, figures or {})
            if self._strict:
                self._write(step)
                return
            with self._changed:
                if self._bytes + step.bytes > self._most:
                    raise Refused(f"{step.bytes} bytes do not fit: {self._bytes} are not written yet, and max_pending_mb allows {self._most}; "
                                  f"raise it, or find out why writing is slow")
                self._pending.append(step)
                self._bytes += step.bytes
                if self._writer is None:
                    self._writer = threading.Thread(target=self._run, name="millrace-recorder", daemon=True)
                    self._writer.start()
                self._changed.notify_all()
        except Exception as e:
            self._drop(version, e)

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._pending:
                    if self._is_closed:
                        return
                    self._changed.wait()
                step = self._pending[0]
            try:
                self._write(step)
            except Exception as e:
                self._drop(step.version, e)
            with self._changed:
                if self._pending and self._pending[0] is step:  # close() may have dropped it
                    self._pending.popleft()
                    self._bytes -= step.bytes
                self._changed.notify_all()

    def _write(self, step: _Step) -> None:
        if self._sink.write(step, _checked(step)):
            self.recorded += 1
        else:
            self.repeated += 1

    def _drop(self, version: Any, error: Exception) -> None:
        with self._changed:
            self.dropped += 1
            self.last_error = error
            is_first = self.dropped == 1
        if self._strict:
            raise error
        if is_first:
            LOG.warning("step %s cannot be recorded: %s; training continues, and later failures are only counted", version, error)

    def close(self) -> None:
        """Writes pending steps within `timeout_s` and drops the rest."""
        deadline = time.monotonic() + self._timeout_s
        with self._changed:
            if self._is_closed:
                return
            self._is_closed = True
            self._changed.notify_all()
            while self._pending and time.monotonic() < deadline:
                self._changed.wait(max(0.0, deadline - time.monotonic()))
            self.dropped += len(self._pending)
            self._pending.clear()
            writer = self._writer
        atexit.unregister(self.close)
        if writer is not None:
            writer.join(max(0.0, deadline - time.monotonic()))
        if writer is None or not writer.is_alive():
            self._sink.close()
        if self.dropped:
            LOG.warning("%d steps are recorded, and %d are not; the last one because: %s", self.recorded, self.dropped,
                        self.last_error or f"it was not written within {self._timeout_s:g} s of close()")

    def __enter__(self) -> "Recorder":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def check(batch: Batch, version: int) -> List[Row]:
    """What is recorded of each sequence of a step besides its tokens' values, as :meth:`Recorder.step` takes it.

    :raises Refused: if a recorder would drop the step
    """
    return _checked(_copied(batch, version, {})).rows


def _copied(batch: Batch, version: int, figures: Mapping[str, float]) -> _Step:
    """Copies data that the trainer may overwrite; everything else is done by the thread."""
    given: Any = {name: _copy(name, value) for name, value in batch.items() if value is not None} if isinstance(batch, Mapping) else [
        {name: _copy(name, value) for name, value in row.items() if value is not None} for row in batch]
    size = sum(_size(value) for of in ([given] if isinstance(given, dict) else given) for value in of.values())
    return _Step(int(version), given, {name: float(value) for name, value in figures.items()}, size)


def _copy(name: str, value: Any) -> Any:
    if hasattr(value, "detach"):  # torch's; NumPy has no bfloat16
        value = value.detach().cpu()
        value = (value.float() if value.is_floating_point() else value).numpy()
    if isinstance(value, np.ndarray):
        return value.astype(np.float32) if name in _FLOATS and value.dtype.kind == "f" else value.copy()
    if isinstance(value, (list, tuple)):
        is_flat = not value or not (isinstance(value[0], (list, tuple, np.ndarray)) or hasattr(value[0], "detach"))
        return tuple(value) if is_flat else tuple(_copy(name, each) for each in value)
    return dict(value) if isinstance(value, Mapping) else value


def _size(value: Any) -> int:
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, tuple):
        return sum(map(_size, value)) if value and isinstance(value[0], (tuple, np.ndarray)) else 32 * len(value)
    return 64


def _array(name: str, value: Any) -> NDArray[Any]:
    """Numbers unchanged; integers are checked against their type's range on the log."""
    if isinstance(value, tuple) and None in value:
        value = [math.nan if each is None else each for each in value]
    try:
        array = np.asarray(value)
        if name in _FLOATS or name == "turn_rewards":
            return array.astype(np.float32, copy=False)
    except (TypeError, ValueError) as e:
        raise Refused(f"{name} cannot be recorded: {e}") from None
    if array.size and array.dtype.kind not in "iub":
        raise Refused(f"{name} cannot be recorded: it holds whole numbers, and this is of {array.dtype}")
    if array.dtype.itemsize > 4 or array.dtype.kind == "u":
        limits = np.iinfo(np.int32)
        if array.size and (array.max() > limits.max or array.min() < limits.min):
            raise Refused(f"{name} holds numbers from {limits.min} to {limits.max}, and this has {array.min()} to {array.max()}")
    return array.astype(np.int32)


def _single(name: str, value: Any) -> Any:
    try:
        if name in _TEXTS:
            return value
        if name in ("prompt_tokens", "turn_rewards"):
            return _array(name, value)
        if name == "reward_components":
            return {key: float(each) for key, each in value.items()}
        return int(value) if name == "version" else float(value)
    except (TypeError, ValueError, AttributeError) as e:
        raise Refused(f"{name} cannot be recorded: {e}") from None


class _Sequences:
    """A step's sequences. Token values are concatenated, so that NumPy works on a whole step at once.

    :ivar bounds: where each sequence begins and the last ends
    :ivar vectors: numbers by field; 0 where a sequence has none
    :ivar there: by field, which sequences have it; None for all
    :ivar rows: the other fields of each sequence
    """

    def __init__(self, step: _Step):
        self.vectors: Dict[str, NDArray[Any]] = {}
        self.there: Dict[str, Optional[NDArray[Any]]] = {}
        self.rows: List[Row] = []
        names = set(step.batch) - {"prompt_mask"} if isinstance(step.batch, dict) else set().union(*step.batch)
        if names - _KNOWN:
            raise Refused(f"unknown field {min(names - _KNOWN)}; known are {', '.join(sorted(_KNOWN))}")
        if isinstance(step.batch, dict):
            self._of_columns(step.batch)
        else:
            self._of_rows(step.batch)
        self.starts = np.array(self.bounds[:-1])
        for name in _NEEDED:
            if name not in self.vectors and not all(name in row for row in self.rows):
                raise Refused(f"sequence {next(i for i, row in enumerate(self.rows) if name not in row)}: {name} is missing")

    def _of_rows(self, rows: Sequence[Row]) -> None:
        if not rows:
            raise Refused("the batch has no sequence")
        found: Dict[str, List[Any]] = {name: [] for name in _PER_TOKEN if any(name in row for row in rows)}
        for i, row in enumerate(rows):
            try:
                for name in _NEEDED:
                    if name not in row:
                        raise Refused(f"{name} is missing")
                mask = _array("mask", row["mask"])
                if mask.ndim != 1 or not len(mask):
                    raise Refused(_MASK)
                for name, arrays in found.items():
                    array = mask if name == "mask" else _array(name, row[name]) if name in row else np.zeros(len(mask), np.int32)
                    if array.shape != mask.shape:
                        raise Refused(f"{name} has the shape {array.shape}, and mask {mask.shape}")
                    arrays.append(array)
                self.rows.append({name: _single(name, value) for name, value in row.items() if name not in found})
            except Refused as e:
                raise Refused(f"sequence {i}: {e}") from None
        self.bounds = [0, *np.cumsum([len(each) for each in found["mask"]]).tolist()]
        for name, arrays in found.items():
            self.there[name] = None if all(name in row for row in rows) else np.array([name in row for row in rows])
            self.vectors[name] = np.concatenate(arrays).astype(np.float32 if name in _FLOATS else np.int32, copy=False)

    def _of_columns(self, columns: Mapping[str, Any]) -> None:
        """Of padded columns, without the padding."""
        if "mask" not in columns:
            raise Refused("the columns have no mask, whose trailing zeros are the padding; add it")
        arrays = {name: _array(name, value) for name, value in columns.items() if name in (*_PER_TOKEN, "prompt_tokens", "prompt_mask")}
        mask = arrays["mask"]
        for name, array in arrays.items():
            if array.ndim != 2 or len(array) != len(mask) or (name not in ("prompt_tokens", "prompt_mask") and array.shape != mask.shape):
                raise Refused(f"the column {name} has the shape {array.shape}, and mask {mask.shape}; give [B, L] for tokens, [B] for the rest")
        if not mask.size:
            raise Refused("the batch has no sequence")
        width = mask.shape[1]
        lengths = np.where(mask.any(1), width - (mask[:, ::-1] != 0).argmax(1), 1)
        inside = np.arange(width) < lengths[:, None]
        self.bounds = [0, *np.cumsum(lengths).tolist()]
        for name in _PER_TOKEN:
            if name in arrays:
                self.vectors[name], self.there[name] = arrays[name][inside], None
        prompts, kept = arrays.get("prompt_tokens"), arrays.get("prompt_mask")
        if prompts is not None and kept is not None and prompts.shape != kept.shape:
            raise Refused(f"the column prompt_mask has the shape {kept.shape}, and prompt_tokens {prompts.shape}")
        singles = {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in columns.items() if name not in arrays}
        for name, value in singles.items():
            if len(value) != len(mask):
                raise Refused(f"the column {name} has {len(value)} elements, and mask {len(mask)} rows")
        for i in range(len(mask)):
            row = {name: _single(name, value[i]) for name, value in singles.items() if value[i] is not None}
            if prompts is not None:
                row["prompt_tokens"] = prompts[i] if kept is None else prompts[i][kept[i] != 0]
            self.rows.append(row)

    def has(self, name: str, i: int) -> bool:
        there = self.there.get(name)
        return name in self.vectors and (there is None or bool(there[i]))

    def of(self, name: str, i: int) -> NDArray[Any]:
        return self.vectors[name][self.bounds[i]:self.bounds[i + 1]]

    def check(self, version: int) -> None:
        """Validates them like the importer, and adds missing sequence ids."""
        mask = self.vectors["mask"]
        if ((mask != 0) & (mask != 1)).any():
            raise self._wrong(((mask != 0) & (mask != 1)).argmax(), _MASK)
        trained = mask == 1
        for name, array in self.vectors.items():
            if name == "mask":
                continue
            if name in _INTS:
                wrong = array < (-1 if name == "turns" else 0)
            else:
                wrong = trained & ~np.isfinite(array)
                if name in _LOG_PROBS:
                    wrong |= trained & (array > _ROUNDING)
            if wrong.any():
                at = int(wrong.argmax())
                i = self._at(at)
                raise self._wrong(at, f"{name}[{at - self.bounds[i]}] is {array[at]}, which cannot be recorded"
                                  + (": the natural log of a probability is finite and at most 0" if name in _LOG_PROBS else ""))
            if name in _LOG_PROBS:
                self.vectors[name] = np.minimum(array, 0)
        newest = np.maximum.reduceat(self.vectors["versions"], self.starts).tolist() if "versions" in self.vectors else None
        for i, row in enumerate(self.rows):
            for one, other in (("version", "versions"), ("advantage", "advantages")):
                if one in row and self.has(other, i):
                    raise Refused(f"sequence {i}: {one} and {other} say the same thing; give one of them")
            sampled = newest[i] if newest is not None and self.has("versions", i) else row.get("version", version)
            if not 0 <= sampled <= version:
                raise Refused(f"sequence {i}: it was sampled by version {sampled}, and the step starts at version {version}; number steps by the "
                              "version that they start from")
            for name in _NUMBERS:
                if name in row and not math.isfinite(row[name]):
                    raise Refused(f"sequence {i}: {name} must be finite: {row[name]}")
            for name in _TEXTS:
                if name in row and not isinstance(row[name], str):
                    raise Refused(f"sequence {i}: {name} must be a text: {row[name]!r}")
            row.setdefault("id", f"{version}-{i}")

    def _at(self, token: int) -> int:
        return int(np.searchsorted(self.starts, token, "right")) - 1

    def _wrong(self, token: Any, why: str) -> Refused:
        return Refused(f"sequence {self._at(token)}: {why}")


def _checked(step: _Step) -> _Sequences:
    if step.version < 0:
        raise Refused(f"version must be at least 0: {step.version}")
    for name, value in step.figures.items():
        if not math.isfinite(value):
            raise Refused(f"the figure {name} is {value}; leave out what could not be computed")
    sequences = _Sequences(step)
    sequences.check(step.version)
    return sequences


class _Files:
    """A file per step, renamed when complete: ``<version>.jsonl``, and the step's figures in ``<version>.figures.json``."""

    def __init__(self, folder: Path):
        self._folder = folder

    def write(self, step: _Step, sequences: _Sequences) -> bool:
        file = self._folder / f"{step.version}.jsonl"
        if file.exists():
            return False
        self._folder.mkdir(parents=True, exist_ok=True)
        if step.figures:
            self._appear(self._folder / f"{step.version}.figures.json", [json.dumps(step.figures).encode(), b"\n"])
        self._appear(file, _lines(step.version, sequences))
        return True

    @staticmethod
    def _appear(file: Path, parts: Sequence[bytes]) -> None:
        begun = file.with_name(file.name + ".part")
        with open(begun, "wb") as out:
            out.writelines(parts)
            out.flush()
            os.fsync(out.fileno())
        os.replace(begun, file)

    def close(self) -> None:
        pass


def _lines(version: int, sequences: _Sequences) -> List[bytes]:
    cells = {name: (_float_cells if name in _FLOATS else _int_cells)(array) for name, array in sequences.vectors.items()}
    parts = []
    for i, row in enumerate(sequences.rows):
        line = {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in row.items()}
        parts.append(json.dumps({"step": version, **line})[:-1].encode())
        start, end = sequences.bounds[i], sequences.bounds[i + 1]
        for name, (data, width) in cells.items():
            if sequences.has(name, i):
                parts += (b', "', name.encode(), b'": [', data[start * width:end * width - 1], b"]")
        parts.append(b"}\n")
    return parts


_PAIRS = np.array([list(f"{i:02}".encode()) for i in range(100)], np.uint8)
_FOURS = np.array([list(f"{i:04}".encode()) for i in range(10_000)], np.uint8)
_POWERS = np.array([float(f"1e{i}") for i in range(-40, 60)])
_NULL = np.frombuffer(b"           null", np.uint8)


def _float_cells(values: NDArray[Any]) -> Tuple[bytes, int]:
    """JSON of float32s, each with the nine digits that tell it from its neighbours and a comma, and the bytes of each."""
    finite = np.isfinite(values)
    amount = np.abs(np.where(finite, values, 0)).astype(np.float64)
    exponent = np.zeros(len(values), np.int64)
    np.floor(np.log10(amount, where=amount > 0, out=np.zeros(len(values))), out=exponent, casting="unsafe")
    digits = np.rint(amount * _POWERS[48 - exponent])
    over = digits >= 1e9
    exponent += over
    digits[over] = np.rint(amount[over] * _POWERS[48 - exponent[over]])
    first, rest = np.divmod(digits.astype(np.int32), 100_000_000)
    upper, lower = np.divmod(rest, 10_000)
    cells = np.empty((len(values), 16), np.uint8)
    cells[:, 0] = np.where(np.signbit(values), ord("-"), ord(" "))
    cells[:, 1] = first + ord("0")
    cells[:, 2] = ord(".")
    cells[:, 3:7] = _FOURS[upper]
    cells[:, 7:11] = _FOURS[lower]
    cells[:, 11] = ord("e")
    cells[:, 12] = np.where(exponent < 0, ord("-"), ord("+"))
    cells[:, 13:15] = _PAIRS[np.abs(exponent)]
    cells[~finite, :15] = _NULL
    cells[:, 15] = ord(",")
    return cells.tobytes(), 16


def _int_cells(values: NDArray[Any]) -> Tuple[bytes, int]:
    """JSON of whole numbers, each with spaces before it and a comma behind it, and the bytes of each."""
    left = np.abs(values.astype(np.int64))
    width = len(str(left.max())) + 1
    cells = np.full((len(values), width + 1), ord(" "), np.uint8)
    cells[:, width] = ord(",")
    cells[:, width - 1] = left % 10 + ord("0")
    begins = np.full(len(values), width - 2)
    for at in range(width - 2, 0, -1):
        left //= 10
        more = left > 0
        cells[more, at] = left[more] % 10 + ord("0")
        begins -= more
    negative = np.flatnonzero(values < 0)
    cells[negative, begins[negative]] = ord("-")
    return cells.tobytes(), width + 1


class _Log:
    """A transaction per step, on the topics of a run.

    The transaction commits three counts as offsets of the group ``<prefix>recorder``: of versions on the topic `run`, of batches on
    `batches`, of rollouts on `training-log`. A recorder that starts again reads them.
    """

    def __init__(self, connect: Callable[[], Run]):
        self._connect = connect
        self._run: Optional[Run] = None
        self._lost: Optional[TakenOver] = None

    def _open(self) -> Run:
        run = self._connect()
        of, kafka = run._identity, run._kafka
        self._partitions = {name: run._partitions.get(of.topic(name), 1) for name in ("rollouts", "scores", "trajectories")}
        at = [(of.topic("run"), 0)] + [(of.topic(name), run._partition(name)) for name in ("batches", "training-log")]
        self._transactions = Transactions(kafka, of.prefix + "recorder", of.topic("run"), f"the recorder of run {of.run_id}", False,
                                          kafka.timeout_s, 60)
        self._member = kafka.consumer(**{"group.id": of.group("recorder")})
        try:
            committed = self._member.committed([TopicPartition(*each) for each in at], kafka.timeout_s)
            self._counts = [max(each.offset, 0) for each in committed]
            self._at = at
            low, high = kafka.ends(self._member, *at[1])
            if low < high and not self._counts[1]:
                raise Refused(f"run {of.run_id} has batches that no recorder wrote; record into a run of its own")
        except BaseException:
            self._transactions.close()
            self._member.close()
            raise
        self._encoders = {name: run._schemas.writer(of.topic(name), {**of.fields(policy=name == "trajectories"), **fixed}, varying)
                          for name, (fixed, varying) in _RECORDS.items()}
        self._vector = run._schemas.writer(of.topic("scores"), {}, _VECTOR, "LogProbVector")
        self._entry = run._schemas.writer(of.topic("batches"), {}, _ENTRY, "BatchEntry")
        self._places = {name: run._schemas.writer(of.topic("trajectories"), {"topic": of.topic(name)}, ("partition", "offset"), "LogCoordinates")
                        for name in ("rollouts", "scores")}
        self._run = run
        return run

    def write(self, step: _Step, sequences: _Sequences) -> bool:
        try:
            try:
                return self._once(step, sequences)
            except (NotCommitted, Uncertain) as e:
                LOG.debug("step %d is tried again: %s", step.version, e)
                self.close()
                self._once(step, sequences)  # a new producer finds out whether it was committed
                return True
        except TakenOver as e:
            self._lost = e
            raise
        except (NotCommitted, Uncertain):
            self.close()  # the next step reconnects
            raise

    def _once(self, step: _Step, sequences: _Sequences) -> bool:
        if self._lost is not None:
            raise self._lost
        run = self._run or self._open()
        if step.version < self._counts[0]:
            return False
        counts = [step.version + 1, self._counts[1] + 1, self._counts[2] + len(sequences.rows)]

        def offsets() -> Tuple[Offsets, Any]:
            return [(*at, count) for at, count in zip(self._at, counts)], self._member.consumer_group_metadata()

        self._transactions.write(f"step {step.version}", lambda: self._send(run, step, sequences), offsets)
        self._counts = counts
        return True

    def _send(self, run: Run, step: _Step, sequences: _Sequences) -> None:
        of, now_ms, rows = run._identity, int(time.time() * 1000), sequences.rows
        _, batch_id, consumed = self._counts
        groups: Dict[str, List[int]] = {}
        for i, row in enumerate(rows):
            groups.setdefault(str(row.get("group", row["id"])), []).append(i)
        records = self._records(sequences, step.version, now_ms)
        partitions: List[Dict[str, int]] = [{} for _ in rows]
        for group, members in groups.items():
            counts = {count: partition_of(group, count) for count in set(self._partitions.values())}
            where = {name: counts[count] for name, count in self._partitions.items()}
            for index, i in enumerate(members):
                records[i].update(group_id=group, ordinal=consumed + members[0], sample_index=index, group_size=len(members))
                partitions[i] = where

        def sent(name: str) -> List[int]:
            topic, places, encode = of.topic(name), [-1] * len(records), self._encoders[name]
            for i, record in enumerate(records):
                self._transactions.send(topic, encode(record), record["group_id"], partitions[i][name], partial(places.__setitem__, i))
            self._transactions.flush()
            return places

        def put(name: str, value: Record) -> None:
            topic = of.topic(name)
            self._transactions.send(topic, run._schemas.encode(topic, {**of.fields(), "batch_id": batch_id, **value}), of.policy_id,
                                    run._partition(name))

        rolled = sent("rollouts")
        for record, where, offset in zip(records, partitions, rolled):
            record["rollout_source"] = Encoded(self._places["rollouts"]({"partition": where["rollouts"], "offset": offset}))
        scored = sent("scores")
        for record, where, offset in zip(records, partitions, scored):
            record["score_source"] = Encoded(self._places["scores"]({"partition": where["scores"], "offset": offset}))
            record.update(record.pop("of_trajectory"))
        entries = []
        for record, where, rollout_offset, offset in zip(records, partitions, rolled, sent("trajectories")):
            record.update(partition=where["trajectories"], offset=offset, rollout_partition=where["rollouts"], rollout_offset=rollout_offset,
                          credit=record["advantages"])
            entries.append(Encoded(self._entry(record)))
        trained, mask = sum(record["trained_tokens"] > 0 for record in records), sequences.vectors["mask"] == 1
        stale = (step.version - self._versions(sequences, step.version))[mask]
        mean, oldest = (float(stale.mean()), int(stale.max())) if stale.size else (0.0, 0)
        put("batches", dict(assembled_version=step.version, expected_version=step.version, entries=entries, stages=[],
                            trained_tokens=int(stale.size), step_scale=1.0, staleness_mean=mean, staleness_max=oldest, assembled_at_ms=now_ms))
        put("training-log", dict(
            version=step.version + 1, weights_sha256="", rollouts_trained=trained, rollouts_masked=len(rows) - trained,
            tokens_trained=int(stale.size), reward_mean=float(np.mean([row["reward"] for row in rows])),
            staleness_mean=mean if stale.size else None, staleness_max=oldest if stale.size else None,
            learning_rate=step.figures.get("learning_rate", 0.0),
            metrics={"response_tokens_mean": sequences.bounds[-1] / len(rows), **step.figures}, started_at_ms=now_ms, finished_at_ms=now_ms,
            tokens_trainable=int(stale.size), rollouts_consumed=consumed + len(rows)))

    @staticmethod
    def _versions(sequences: _Sequences, step: int) -> NDArray[Any]:
        """Sampling version of each token."""
        lengths = np.diff(sequences.bounds)
        ones = np.repeat([row.get("version", step) for row in sequences.rows], lengths)
        if "versions" not in sequences.vectors:
            return ones
        versions, there = sequences.vectors["versions"].astype(np.int64), sequences.there["versions"]
        return versions if there is None else np.where(np.repeat(there, lengths), versions, ones)

    def _records(self, sequences: _Sequences, step: int, now_ms: int) -> List[Record]:
        """Record fields of each sequence, except its group and those known after writing."""
        rollout, trajectory = self._encoders["rollouts"], self._encoders["trajectories"]
        data: Dict[str, bytes] = {}  # a number may be missing where the mask is 0; the log has 0 there
        for name, array in sequences.vectors.items():
            data[name] = (array.astype(np.int8) if name == "mask" else np.nan_to_num(array, nan=0.0, posinf=0.0, neginf=0.0)
                          if name in _FLOATS else array).tobytes()
        bounds, mask = sequences.bounds, sequences.vectors["mask"] == 1
        trained = np.add.reduceat(mask, sequences.starts, dtype=np.int64).tolist()
        versions = _runs(self._versions(sequences, step), bounds)
        oldest = [min(run[0] for run in runs) for runs in versions]
        turns = _runs(sequences.vectors["turns"], bounds) if "turns" in sequences.vectors else None

        @lru_cache(None)
        def spans(*runs: Tuple[int, int, int]) -> Encoded:
            return rollout.field("version_spans", [dict(version=version, start=start, end=end) for version, start, end in runs])

        @lru_cache(None)
        def speakers(of: PartialWriter, *runs: Tuple[int, int, int]) -> Encoded:
            return of.field("turns", [dict(speaker="ENVIRONMENT" if turn < 0 else "POLICY", start=start, end=end) for turn, start, end in runs])

        @lru_cache(None)
        def tempered(temperature: float, count: int) -> Record:
            sampling = dict(temperature=temperature, top_k=0, top_p=1.0, max_tokens=count, seed=0)
            return {"sampling": rollout.field("sampling", sampling), "temperature": trajectory.field("temperature", temperature),
                    "log_prob_distribution": rollout.field("log_prob_distribution", "RAW" if temperature == 1 else "TEMPERED")}

        @lru_cache(None)
        def finished(reason: str, at_ms: int) -> Record:
            at = rollout.field("finished_at_ms", at_ms)
            return {"finish_reason": rollout.field("finish_reason", reason.upper() if reason.upper() in _REASONS else "UNKNOWN"),
                    "finished_at_ms": at, "started_at_ms": at}

        pairs = list(zip(bounds, bounds[1:]))

        def vectors_of(name: str) -> List[Optional[bytes]]:
            """Of each sequence; None where it has none."""
            if name not in data:
                return [None] * len(pairs)
            there = sequences.there[name]
            whole, width = data[name], 1 if name == "mask" else 4
            return [whole[width * start:width * end] if there is None or there[i] else None for i, (start, end) in enumerate(pairs)]

        cut = {name: vectors_of(name) for name in _PER_TOKEN}
        of_step = {"scored_at_ms": trajectory.field("scored_at_ms", now_ms), "proximal_version": trajectory.field("proximal_version", step)}
        made = []
        for i, row in enumerate(sequences.rows):
            start, count = bounds[i], bounds[i + 1] - bounds[i]

            advantages = cut["advantages"][i]
            if advantages is None and "advantage" not in row:
                raise Refused(f"sequence {row['id']} has no advantage, and a batch on a cluster says what was decided; give advantage or advantages")
            taken = mask[start:start + count]
            reason = row.get("finish_reason", "UNKNOWN")
            of = spans(*versions[i])
            whole, other = spans((step, 0, count)), spans((-1, 0, count))
            credit = {"token_level_rewards": cut["token_rewards"][i], "token_level_values": cut["values"][i],
                      "greedy_reward": row.get("greedy_reward"), "turn_level_rewards": row.get("turn_rewards")}
            said = turns[i] if turns is not None and sequences.has("turns", i) else None
            proximal, old, entropies, squares = (
                cut["proximal_log_probs"][i], cut["old_log_probs"][i], cut["entropies"][i], cut["squared_probabilities"][i])
            reference, teacher = cut["reference_log_probs"][i], cut["teacher_log_probs"][i]
            vectors = [Encoded(self._vector(dict(zip(_VECTOR, each)))) for each in (
                ("PROXIMAL", whole, proximal, entropies, squares), ("OLD", of, old, None, None), ("REFERENCE", other, reference, None, None),
                ("TEACHER", other, teacher, None, None)) if each[2] is not None]
            made.append({
                **of_step, **tempered(row.get("temperature", 1.0), count), **finished(reason, now_ms - int(row.get("age_ms", 0))),
                "rollout_id": row["id"], "prompt_tokens": row["prompt_tokens"].tobytes() if "prompt_tokens" in row else b"",
                "response_tokens": cut["response_tokens"][i] or b"", "mask": cut["mask"][i], "version_spans": of,
                "behavior_log_probs": cut["behavior_log_probs"][i], "reward": row["reward"], "reward_components": row.get("reward_components", {}),
                "credit": credit if any(value is not None for value in credit.values()) else None,
                "turns": speakers(rollout, *(said or [(0, 0, count)])),
                "admitted_version": versions[i][0][0], "vectors": vectors,
                "of_trajectory": {"finish_reason": reason, "turns": None if said is None else speakers(trajectory, *said)},
                "old_log_probs": old, "proximal_log_probs": proximal, "reference_log_probs": reference,
                "teacher_log_probs": teacher, "proximal_entropies": entropies, "proximal_sum_squared_probs": squares,
                "advantage": row["advantage"] if advantages is None else
                float(sequences.of("advantages", i)[taken].mean()) if taken.any() else 0.0,
                "advantages": None if advantages is None else {"token_level_advantages": advantages},
                "oldest_version": oldest[i], "trained_tokens": trained[i], "masked_by": None if trained[i] else "records"})
        return made

    def close(self) -> None:
        if self._run is not None:
            self._run = None
            self._transactions.close()
            self._member.close()


def _runs(values: NDArray[Any], bounds: List[int]) -> List[Tuple[Tuple[int, int, int], ...]]:
    """Of each sequence, each value with where it begins and ends, of values that repeat."""
    changes = np.flatnonzero(np.diff(values, prepend=values[0])).tolist()
    edges = sorted({*changes, *bounds})
    found: List[Tuple[Tuple[int, int, int], ...]] = []
    runs: List[Tuple[int, int, int]] = []
    for start, end, value in zip(edges, edges[1:], values[edges[:-1]].tolist()):
        begun = bounds[len(found)]
        runs.append((value, start - begun, end - begun))
        if end == bounds[len(found) + 1]:
            found.append(tuple(runs))
            runs = []
    return found


_REASONS = ("STOP", "LENGTH", "ENVIRONMENT", "TOOL_CALLS", "TIMEOUT", "ABORTED", "FAILED")
_OF_ALL = ("rollout_id", "group_id", "ordinal", "sample_index", "group_size", "prompt_tokens", "response_tokens", "mask", "version_spans",
           "behavior_log_probs", "reward", "reward_components", "finish_reason", "finished_at_ms", "credit", "turns")
#: by topic, the fields that all records share, and those of each
_RECORDS: Dict[str, Tuple[Record, Tuple[str, ...]]] = {
    "rollouts": (dict(generator_id="recorder", environment="recorded", tokenizer_hash=""),
                 (*_OF_ALL, "log_prob_distribution", "sampling", "admitted_version", "started_at_ms")),
    "scores": (dict(scorer_id="recorder"), ("rollout_id", "group_id", "rollout_source", "vectors", "scored_at_ms")),
    "trajectories": ({}, (*_OF_ALL, "rollout_source", "score_source", "proximal_version", "scored_at_ms", "temperature", "old_log_probs",
                          "proximal_log_probs", "reference_log_probs", "teacher_log_probs", "proximal_entropies", "proximal_sum_squared_probs"))}
_VECTOR = ("policy", "version_spans", "log_probs", "entropies", "sum_squared_probs")
_ENTRY = ("rollout_id", "group_id", "partition", "offset", "rollout_partition", "rollout_offset", "reward", "advantage", "oldest_version",
          "trained_tokens", "masked_by", "credit")
