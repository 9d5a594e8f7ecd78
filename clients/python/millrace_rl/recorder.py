"""Records the steps of another system's trainer, so that Millrace can be asked about them."""

from __future__ import annotations

import atexit
import json
import math
import os
import threading
import time
from collections import deque
from functools import partial
from pathlib import Path
from typing import Any, Callable, Deque, Dict, List, Mapping, NamedTuple, Optional, Protocol, Sequence, Tuple, Union

import numpy as np
from numpy.typing import NDArray

from millrace_rl.avro import Record
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
_NUMBERS = ("reward", "advantage", "temperature", "greedy_reward", "age_ms")
_TEXTS = ("group", "id", "finish_reason")
_KNOWN = {"mask", "prompt_tokens", "turn_rewards", "reward_components", "version", *_FLOATS, *_INTS, *_NUMBERS, *_TEXTS}
_NEEDED = ("mask", "behavior_log_probs", "proximal_log_probs", "reward")
#: a log-prob of a certain token may exceed 0 by rounding
_ROUNDING = 1e-5

Row = Dict[str, Any]
Batch = Union[Sequence[Mapping[str, Any]], Mapping[str, Any]]


class _Step(NamedTuple):
    version: int
    rows: List[Row]
    figures: Dict[str, float]
    bytes: int


class _Sink(Protocol):
    def write(self, step: _Step) -> bool:
        """Records a step wholly or not at all; False if it is recorded already."""

    def close(self) -> None: ...


class Recorder:
    """Records what each step of a trainer was given, one call per step.

    >>> recorder = Recorder("kafka:9092", "its-run")       # or Recorder(directory="recorded"): files for 'millrace import --records'
    >>> recorder.step(rows, version=step, figures={"loss": loss})

    A thread writes. :meth:`step` copies the batch and returns; it neither waits nor raises. A step that does not fit into the memory, is
    malformed or cannot be written is dropped: `dropped` counts it, `last_error` says why, and the first one logs a warning. A step is
    recorded once: another call with its version only counts as `repeated`. On a cluster a step is one transaction, of the rollouts, their
    scores and trajectories, the batch and the training log's record; there, so is a call with a version below the newest recorded one.

    With `strict`, :meth:`step` writes before it returns, and raises. Call it on one rank, from one thread. :meth:`close` writes what is
    pending; it runs at the interpreter's exit too.

    :param bootstrap_servers: brokers to ask first, ``host:port`` and more of them behind commas
    :param run_id: of a run that is there and has no learner
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
                    raise Refused(f"{step.bytes} bytes do not fit beside the {self._bytes} that are not written yet, and max_pending_mb allows "
                                  f"{self._most}; raise it, or see why writing is slow")
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
                if self._pending and self._pending[0] is step:  # close() may have given it up
                    self._pending.popleft()
                    self._bytes -= step.bytes
                self._changed.notify_all()

    def _write(self, step: _Step) -> None:
        if self._sink.write(_checked(step)):
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
            LOG.warning("step %s is not recorded: %s; training goes on, and further steps that are not are only counted", version, error)

    def close(self) -> None:
        """Writes what is pending, within `timeout_s`; what is left then is dropped."""
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


def _array(value: Any, dtype: Any) -> NDArray[Any]:
    """A copy of its own: the trainer may write into its buffers."""
    if hasattr(value, "detach"):  # torch's; NumPy has no bfloat16
        value = value.detach().cpu()
        value = (value.float() if value.is_floating_point() else value).numpy()
    elif isinstance(value, (list, tuple)) and None in value:
        value = [math.nan if each is None else each for each in value]
    array = np.asarray(value)
    if np.dtype(dtype).kind == "i" and array.size and array.dtype.kind not in "iub":
        raise Refused(f"it holds whole numbers, and this is of {array.dtype}")
    return np.array(array, dtype)


def _field(name: str, value: Any) -> Any:
    if name not in _KNOWN:
        raise Refused(f"unknown field {name}; known are {', '.join(sorted(_KNOWN))}")
    try:
        if name in _FLOATS or name == "turn_rewards":
            return _array(value, np.float32)
        if name in _INTS or name in ("mask", "prompt_tokens"):
            return _array(value, np.int8 if name == "mask" else np.int32)
        if name in _TEXTS:
            return value
        if name == "reward_components":
            return {key: float(each) for key, each in value.items()}
        return int(value) if name == "version" else float(value)
    except (TypeError, ValueError, AttributeError) as e:
        raise Refused(f"{name} cannot be recorded: {e}") from None


def _copied(batch: Batch, version: int, figures: Mapping[str, float]) -> _Step:
    rows: List[Row]
    if isinstance(batch, Mapping):
        rows = _rows(batch)
    else:
        rows = [{name: _field(name, value) for name, value in row.items() if value is not None} for row in batch]
    size = sum(value.nbytes if isinstance(value, np.ndarray) else 64 for row in rows for value in row.values())
    return _Step(int(version), rows, {name: float(value) for name, value in figures.items()}, size)


def _rows(columns: Mapping[str, Any]) -> List[Row]:
    """The rows of padded columns, without the padding."""
    there = {name: value for name, value in columns.items() if value is not None}
    prompt_mask = _array(there.pop("prompt_mask"), np.int8) if "prompt_mask" in there else None
    if "mask" not in there:
        raise Refused("the columns have no mask, whose trailing zeros are the padding; add it")
    arrays = {name: _field(name, value) for name, value in there.items() if name in (*_FLOATS, *_INTS, "mask", "prompt_tokens")}
    mask = arrays["mask"]
    for name, array in arrays.items():
        if array.ndim != 2 or len(array) != len(mask) or (name != "prompt_tokens" and array.shape != mask.shape):
            raise Refused(f"the column {name} has the shape {array.shape}, and mask {mask.shape}; give [B, L] for tokens, [B] for the rest")
    singles = {name: value.tolist() if hasattr(value, "tolist") else list(value) for name, value in there.items()
               if name not in arrays}
    for name, value in singles.items():
        if len(value) != len(mask):
            raise Refused(f"the column {name} has {len(value)} elements, and mask {len(mask)} rows")
    rows = []
    for i, of in enumerate(mask):
        length = int(np.flatnonzero(of).max(initial=0)) + 1
        row = {name: array[i, :length].copy() for name, array in arrays.items() if name != "prompt_tokens"}
        if "prompt_tokens" in arrays:
            tokens = arrays["prompt_tokens"][i]
            row["prompt_tokens"] = tokens.copy() if prompt_mask is None else tokens[prompt_mask[i] != 0]
        row.update({name: _field(name, value[i]) for name, value in singles.items() if value[i] is not None})
        rows.append(row)
    return rows


def _checked(step: _Step) -> _Step:
    """Holds a step to what the importer asks of its lines, and gives sequences without an id one."""
    if step.version < 0:
        raise Refused(f"version must be at least 0: {step.version}")
    if not step.rows:
        raise Refused("the batch has no sequence")
    for name, value in step.figures.items():
        if not math.isfinite(value):
            raise Refused(f"the figure {name} is {value}; leave out what could not be computed")
    for i, row in enumerate(step.rows):
        try:
            _check(row, step.version)
        except Refused as e:
            raise Refused(f"sequence {i}: {e}") from None
        row.setdefault("id", f"{step.version}-{i}")
    return step


def _check(row: Row, step: int) -> None:
    for name in _NEEDED:
        if name not in row:
            raise Refused(f"{name} is missing")
    for one, other in (("version", "versions"), ("advantage", "advantages")):
        if one in row and other in row:
            raise Refused(f"{one} and {other} say the same thing; give one of them")
    mask = row["mask"]
    if mask.ndim != 1 or not len(mask) or ((mask != 0) & (mask != 1)).any():
        raise Refused("mask must be 0 or 1 for each response token, of which there is at least one")
    for name in (*_FLOATS, *_INTS):
        if name not in row:
            continue
        array = row[name]
        if array.shape != mask.shape:
            raise Refused(f"{name} has the shape {array.shape}, and mask {mask.shape}")
        wrong = (mask == 1) & ~np.isfinite(array)
        if name in _LOG_PROBS:
            wrong |= (mask == 1) & (array > _ROUNDING)
        elif name in _INTS:
            wrong = array < (-1 if name == "turns" else 0)
        if wrong.any():
            at = int(wrong.argmax())
            raise Refused(f"{name}[{at}] is {array[at]}, which cannot be recorded"
                          + (": the natural log of a probability is finite and at most 0" if name in _LOG_PROBS else ""))
        if name in _LOG_PROBS:
            np.minimum(array, 0, out=array)
    newest = int(row["versions"].max()) if "versions" in row else row.get("version", step)
    if not 0 <= newest <= step:
        raise Refused(f"it was sampled by version {newest}, and the step starts at version {step}; number steps by the version that they start from")
    for name in _NUMBERS:
        if name in row and not math.isfinite(row[name]):
            raise Refused(f"{name} must be finite: {row[name]}")
    for name in _TEXTS:
        if name in row and not isinstance(row[name], str):
            raise Refused(f"{name} must be a text: {row[name]!r}")


class _Files:
    """A file per step, which appears whole: ``<version>.jsonl``, and the step's figures beside it in ``<version>.figures.json``."""

    def __init__(self, folder: Path):
        self._folder = folder

    def write(self, step: _Step) -> bool:
        file = self._folder / f"{step.version}.jsonl"
        if file.exists():
            return False
        self._folder.mkdir(parents=True, exist_ok=True)
        if step.figures:
            self._appear(self._folder / f"{step.version}.figures.json", json.dumps(step.figures) + "\n")
        self._appear(file, "".join(json.dumps({"step": step.version, **_jsonable(row)}) + "\n" for row in step.rows))
        return True

    @staticmethod
    def _appear(file: Path, text: str) -> None:
        begun = file.with_name(file.name + ".part")
        with open(begun, "w", encoding="utf-8") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        os.replace(begun, file)

    def close(self) -> None:
        pass


def _jsonable(row: Row) -> Record:
    line: Record = {}
    for name, value in row.items():
        if isinstance(value, np.ndarray):
            items = value.tolist()
            value = [each if math.isfinite(each) else None for each in items] if name in _FLOATS else items
        line[name] = value
    return line


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
        self._run = run
        return run

    def write(self, step: _Step) -> bool:
        try:
            try:
                return self._once(step)
            except (NotCommitted, Uncertain) as e:
                LOG.debug("step %d is tried again: %s", step.version, e)
                self.close()
                self._once(step)  # a new producer finds out whether it was committed
                return True
        except TakenOver as e:
            self._lost = e
            raise
        except (NotCommitted, Uncertain):
            self.close()  # the next step connects anew
            raise

    def _once(self, step: _Step) -> bool:
        if self._lost is not None:
            raise self._lost
        run = self._run or self._open()
        if step.version < self._counts[0]:
            return False
        counts = [step.version + 1, self._counts[1] + 1, self._counts[2] + len(step.rows)]

        def offsets() -> Tuple[Offsets, Any]:
            return [(*at, count) for at, count in zip(self._at, counts)], self._member.consumer_group_metadata()

        self._transactions.write(f"step {step.version}", lambda: self._send(run, step), offsets)
        self._counts = counts
        return True

    def _send(self, run: Run, step: _Step) -> None:
        of, now_ms, rows = run._identity, int(time.time() * 1000), step.rows
        _, batch_id, consumed = self._counts
        groups: Dict[str, List[int]] = {}
        for i, row in enumerate(rows):
            groups.setdefault(row.get("group", row["id"]), []).append(i)
        known: List[Record] = [{} for _ in rows]  # what a row's records share
        for group, members in groups.items():
            for index, i in enumerate(members):
                known[i] = {"rollout_id": rows[i]["id"], "group_id": group, "ordinal": consumed + members[0], "sample_index": index,
                            "group_size": len(members), **_shared(rows[i], step.version, now_ms)}

        def sent(name: str, records: List[Record]) -> List[Record]:
            topic, places = of.topic(name), [-1] * len(records)
            partitions = [partition_of(each["group_id"], self._partitions[name]) for each in records]
            for i, record in enumerate(records):
                self._transactions.send(topic, run._schemas.encode(topic, record), record["group_id"], partitions[i],
                                        partial(places.__setitem__, i))
            self._transactions.flush()
            return [dict(topic=topic, partition=partition, offset=offset) for partition, offset in zip(partitions, places)]

        rollouts = sent("rollouts", [{**of.fields(policy=False), **_rollout(row, both, now_ms)} for row, both in zip(rows, known)])
        scores = sent("scores", [
            {**of.fields(policy=False), "rollout_id": both["rollout_id"], "group_id": both["group_id"], "scorer_id": "recorder",
             "rollout_source": source, "vectors": _vectors(row, both, step.version), "scored_at_ms": now_ms}
            for row, both, source in zip(rows, known, rollouts)])
        trajectories = sent("trajectories", [
            {**of.fields(), **both, "rollout_source": source, "score_source": score, "proximal_version": step.version,
             "scored_at_ms": now_ms, **_trajectory(row)} for row, both, source, score in zip(rows, known, rollouts, scores)])
        stale = np.concatenate([step.version - np.repeat([span["version"] for span in both["version_spans"]],
                                                         [span["end"] - span["start"] for span in both["version_spans"]])[row["mask"] == 1]
                                for row, both in zip(rows, known)])
        entries = [{"rollout_id": both["rollout_id"], "group_id": both["group_id"], "partition": at["partition"], "offset": at["offset"],
                    "rollout_partition": source["partition"], "rollout_offset": source["offset"], **_entry(row, both)}
                   for row, both, at, source in zip(rows, known, trajectories, rollouts)]
        mean, oldest = (float(stale.mean()), int(stale.max())) if stale.size else (0.0, 0)
        trained = sum(entry["trained_tokens"] > 0 for entry in entries)

        def put(name: str, record: Record) -> None:
            topic = of.topic(name)
            self._transactions.send(topic, run._schemas.encode(topic, {**of.fields(), "batch_id": batch_id, **record}), of.policy_id,
                                    run._partition(name))

        put("batches", dict(assembled_version=step.version, expected_version=step.version, entries=entries, stages=[],
                            trained_tokens=int(stale.size), step_scale=1.0, staleness_mean=mean, staleness_max=oldest, assembled_at_ms=now_ms))
        put("training-log", dict(
            version=step.version + 1, weights_sha256="", rollouts_trained=trained, rollouts_masked=len(rows) - trained,
            tokens_trained=int(stale.size), reward_mean=float(np.mean([row["reward"] for row in rows])),
            staleness_mean=mean if stale.size else None, staleness_max=oldest if stale.size else None,
            learning_rate=step.figures.get("learning_rate", 0.0), metrics=step.figures, started_at_ms=now_ms, finished_at_ms=now_ms,
            tokens_trainable=int(stale.size), rollouts_consumed=consumed + len(rows)))

    def close(self) -> None:
        if self._run is not None:
            self._run = None
            self._transactions.close()
            self._member.close()


def _runs(values: NDArray[Any]) -> List[Tuple[Any, int, int]]:
    """Each value with where it begins and ends, of values that repeat."""
    edges = [0, *(np.flatnonzero(np.diff(values)) + 1).tolist(), len(values)]
    return [(values[start].item(), start, end) for start, end in zip(edges, edges[1:])]


def _filled(array: Optional[NDArray[Any]]) -> Optional[NDArray[Any]]:
    """Where the mask is 0 a number may be missing; the log has 0 there."""
    return None if array is None else np.nan_to_num(array, nan=0.0, posinf=0.0, neginf=0.0)


def _shared(row: Row, step: int, now_ms: int) -> Record:
    versions = row.get("versions", np.full(len(row["mask"]), row.get("version", step)))
    credit = {"token_level_rewards": _filled(row.get("token_rewards")), "token_level_values": _filled(row.get("values")),
              "greedy_reward": row.get("greedy_reward"), "turn_level_rewards": row.get("turn_rewards")}
    return {"prompt_tokens": row.get("prompt_tokens", b""), "response_tokens": row.get("response_tokens", b""), "mask": row["mask"],
            "version_spans": [dict(version=version, start=start, end=end) for version, start, end in _runs(versions)],
            "behavior_log_probs": _filled(row["behavior_log_probs"]), "reward": row["reward"],
            "reward_components": row.get("reward_components", {}), "finish_reason": row.get("finish_reason", "UNKNOWN"),
            "finished_at_ms": now_ms - int(row.get("age_ms", 0)),
            "credit": credit if any(value is not None for value in credit.values()) else None,
            "turns": [dict(speaker="ENVIRONMENT" if turn < 0 else "POLICY", start=start, end=end) for turn, start, end in _runs(row["turns"])]
            if "turns" in row else None}


def _rollout(row: Row, both: Record, now_ms: int) -> Record:
    temperature, count = row.get("temperature", 1.0), len(row["mask"])
    reason = both["finish_reason"].upper()
    return {**both, "generator_id": "recorder", "environment": "recorded", "tokenizer_hash": "",
            "log_prob_distribution": "RAW" if temperature == 1 else "TEMPERED",
            "sampling": dict(temperature=temperature, top_k=0, top_p=1.0, max_tokens=count, seed=0),
            "turns": both["turns"] or [dict(speaker="POLICY", start=0, end=count)],
            "finish_reason": reason if reason in ("STOP", "LENGTH", "ENVIRONMENT", "TOOL_CALLS", "TIMEOUT", "ABORTED", "FAILED") else "UNKNOWN",
            "admitted_version": both["version_spans"][0]["version"], "started_at_ms": both["finished_at_ms"]}


def _vectors(row: Row, both: Record, step: int) -> List[Record]:
    whole = [dict(version=step, start=0, end=len(row["mask"]))]
    other = [dict(whole[0], version=-1)]
    found = (("PROXIMAL", "proximal_log_probs", whole), ("OLD", "old_log_probs", both["version_spans"]),
             ("REFERENCE", "reference_log_probs", other), ("TEACHER", "teacher_log_probs", other))
    return [dict(policy=policy, version_spans=spans, log_probs=_filled(row[name]),
                 **(dict(entropies=_filled(row.get("entropies")), sum_squared_probs=_filled(row.get("squared_probabilities")))
                    if policy == "PROXIMAL" else {}))
            for policy, name, spans in found if name in row]


def _trajectory(row: Row) -> Record:
    return {"temperature": row.get("temperature", 1.0), "old_log_probs": _filled(row.get("old_log_probs")),
            "proximal_log_probs": _filled(row["proximal_log_probs"]), "reference_log_probs": _filled(row.get("reference_log_probs")),
            "teacher_log_probs": _filled(row.get("teacher_log_probs")), "proximal_entropies": _filled(row.get("entropies")),
            "proximal_sum_squared_probs": _filled(row.get("squared_probabilities"))}


def _entry(row: Row, both: Record) -> Record:
    trained = row["mask"] == 1
    advantages = _filled(row.get("advantages"))
    if advantages is None and "advantage" not in row:
        raise Refused(f"sequence {row['id']} has no advantage, and a batch on a cluster says what was decided; give advantage or advantages")
    mean = row["advantage"] if advantages is None else float(advantages[trained].mean()) if trained.any() else 0.0
    return {"reward": row["reward"], "advantage": mean, "oldest_version": min(span["version"] for span in both["version_spans"]),
            "trained_tokens": int(trained.sum()), "masked_by": None if trained.any() else "records",
            "credit": None if advantages is None else {"token_level_advantages": advantages}}
