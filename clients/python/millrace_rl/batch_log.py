"""Batches as they are on the log, with the trajectories that they point at."""

from __future__ import annotations

from operator import methodcaller
from typing import Any, Iterator, List, Optional, Tuple

import numpy as np
from numpy.typing import NDArray

from millrace_rl.avro import Record
from millrace_rl.batch import Batch, Floats, spread
from millrace_rl.errors import Malformed, Missing
from millrace_rl.kafka import KafkaException, TopicPartition
from millrace_rl.log import Forward, Kafka, Records, Schemas
from millrace_rl.rows import ABSENT, Columns, Ints, JoinedRows, NotSideBySide, Rows, SingleRows, joined, same_texts
from millrace_rl.versions import Identity

#: fields read of a trajectory; others are skipped
_OF_TRAJECTORY = (
    "run_id", "epoch", "policy_id", "rollout_id", "prompt_tokens", "response_tokens", "mask", "temperature", "version_spans",
    "behavior_log_probs", "old_log_probs", "proximal_log_probs", "proximal_version", "reference_log_probs", "teacher_log_probs",
    "proximal_entropies", "kept_tokens",
)
_COLUMNS_OF_TRAJECTORY = (*(name for name in _OF_TRAJECTORY if name not in ("epoch", "version_spans")), "epoch", "version_spans.version",
                          "version_spans.start", "version_spans.end")
_COLUMNS_OF_ENTRY = ("rollout_id", "group_id", "partition", "offset", "reward", "advantage", "mask", "credit",
                     "credit.token_level_advantages", "weights")
#: fewer or longer records are faster one by one
_SIDE_BY_SIDE = 32
_SHORT_BYTES = 32 << 10
#: records read together: large pieces exceed the processor's caches
_PIECE_BYTES, _FEWEST, _MOST = 2 << 20, 256, 1536
_NOT_OF_ENTRY = tuple("BatchEntry." + name for name in ("rollout_partition", "rollout_offset", "oldest_version", "trained_tokens", "masked_by"))
_LOG_PROBS = ("behavior_log_probs", "proximal_log_probs", "old_log_probs", "reference_log_probs", "teacher_log_probs", "proximal_entropies")


_VALUE, _OFFSET = methodcaller("value"), methodcaller("offset")


class _Piece:
    """Trajectories of one partition that were read together."""

    def __init__(self, schemas: Schemas, records: Records, partition: int, values: List[bytes], offsets: Ints):
        self._schemas = schemas
        self._records = records
        self._values = values
        self._columns: Optional[Columns] = None
        self._tried = len(values) < _SIDE_BY_SIDE
        self.partition = partition
        self.offsets = offsets
        self.first, self.last = int(offsets[0]), int(offsets[-1])
        self.is_dense = self.last - self.first == len(offsets) - 1
        self._lengths = np.fromiter(map(len, values), np.int64, len(values))
        self.bytes = int(self._lengths.sum())
        self.left = len(values)

    def holds(self, offsets: Ints) -> Tuple[Ints, "NDArray[np.bool_]"]:
        """Index of each, and whether it exists."""
        if self.is_dense:
            return offsets - self.first, (offsets >= self.first) & (offsets <= self.last)
        at = np.minimum(np.searchsorted(self.offsets, offsets), len(self.offsets) - 1)
        return at, self.offsets[at] == offsets

    def rows(self, at: Ints) -> Rows:
        if not self._tried:
            self._tried = True
            self._columns = self._side_by_side()
        if self._columns is not None:
            return self._columns.of(at)
        return SingleRows([self._records.of(self._values[i]) for i in at.tolist()])

    def _side_by_side(self) -> Optional[Columns]:
        if self.bytes > _SHORT_BYTES * len(self._values):
            return None
        data, edges = b"".join(self._values), _edges(self._lengths)
        begins, ends = edges[:-1], edges[1:]
        head = data[:5]
        if len(head) < 5 or head[0] != 0 or self._lengths.min() < 5:
            return None
        if not Columns(data, len(begins), {"head": (begins, begins + 5)}).all_are("head", head):
            return None
        try:
            found = self._schemas.columns(int.from_bytes(head[1:], "big"), "Trajectory", _COLUMNS_OF_TRAJECTORY).read(data, begins + 5, ends)
        except NotSideBySide:
            return None
        self._values = []
        return found


class Trajectories:
    """Fetches the trajectories of batches. They are nearly in batch order, so the topic is read once, forwards; trajectories in between are
    kept for later batches, up to `kept_bytes`."""

    def __init__(self, kafka: Kafka, schemas: Schemas, identity: Identity, kept_bytes: int = 256 << 20):
        self._topic = identity.topic("trajectories")
        self._forward = Forward(kafka, self._topic)
        self._schemas = schemas
        self._records = Records(schemas, _OF_TRAJECTORY, arrays=False)
        self._kept_bytes = kept_bytes
        self._at_once = _FEWEST
        self._pieces: List[_Piece] = []

    def fetch(self, batch: Record) -> Rows:
        """Those of a batch, in its order.

        :raises Missing: if the log no longer has one
        """
        entries: Rows = batch["entries"]
        partitions, offsets = entries.numbers("partition"), entries.numbers("offset")
        known, found = self._known(partitions, offsets)
        if not known.all():
            for partition in np.unique(partitions[~known]).tolist():
                wanted = offsets[~known & (partitions == partition)]
                self._read(partition, int(wanted.min()), int(wanted.max()), batch)
            known, found = self._known(partitions, offsets)
        if not known.all():
            s = int(np.argmin(known))
            raise Missing(f"batch {batch['batch_id']} points at {self._topic}-{partitions[s]}@{offsets[s]}, and there is no record")
        parts = [piece.rows(at) for piece, _, at in found]
        for piece, _, at in found:
            piece.left -= len(at)
        self._forget()
        if len(parts) < 2:
            return parts[0] if parts else SingleRows([])
        order = np.concatenate([s for _, s, _ in found])
        joined = JoinedRows(parts)
        return joined if (np.diff(order) > 0).all() else joined.of(np.argsort(order))

    def _known(self, partitions: Ints, offsets: Ints) -> Tuple["NDArray[np.bool_]", List[Tuple[_Piece, Ints, Ints]]]:
        """Which ones are kept; and their pieces, each with sequences of the batch and positions."""
        known = np.zeros(len(offsets), np.bool_)
        found = []
        if len(offsets):
            first, last = int(offsets.min()), int(offsets.max())
            for piece in self._pieces:
                if piece.first <= last and piece.last >= first:
                    there = partitions == piece.partition
                    if piece.is_dense and piece.first <= first and piece.last >= last and there.all():  # as most batches
                        return there, [(piece, np.arange(len(offsets)), offsets - piece.first)]
                    at, held = piece.holds(offsets)
                    there &= held & ~known
                    if there.all():
                        return there, [(piece, np.arange(len(at)), at)]
                    if there.any():
                        known |= there
                        found.append((piece, np.flatnonzero(there), at[there]))
        return known, found

    def _forget(self) -> None:
        self._pieces = [piece for piece in self._pieces if piece.left > 0]
        kept = sum(piece.bytes for piece in self._pieces)
        while kept > self._kept_bytes:
            kept -= self._pieces.pop(0).bytes

    def _read(self, partition: int, first: int, last: int, batch: Record) -> None:
        values: List[bytes] = []
        offsets: List[Ints] = []
        count = last - first + 1
        whole = count + max(0, self._at_once - count) // len(batch["entries"]) * len(batch["entries"])  # a batch in two pieces is joined
        try:
            for messages in self._forward.read(partition, first, last, whole):
                read = list(map(_VALUE, messages))
                if None in read:
                    messages = [message for message, value in zip(messages, read) if value is not None]
                    read = [value for value in read if value is not None]
                values += read
                offsets.append(_offsets(messages))
        except Missing as e:
            raise Missing(f"batch {batch['batch_id']} references a trajectory that is not available: {e}") from None
        if values:
            piece = _Piece(self._schemas, self._records, partition, values, np.concatenate(offsets))
            self._pieces.append(piece)
            self._at_once = min(_MOST, max(_FEWEST, _PIECE_BYTES * len(values) // max(1, piece.bytes)))

    def close(self) -> None:
        self._forward.close()


def _offsets(messages: List[Any]) -> Ints:
    """Of messages in the order of a partition."""
    first, last = (messages[0].offset(), messages[-1].offset()) if messages else (0, -1)
    return np.arange(first, last + 1) if last - first < len(messages) else np.fromiter(map(_OFFSET, messages), np.int64, len(messages))


class _BatchRecords(Records):
    """Reads batches, with many entries column by column."""

    def __init__(self, schemas: Schemas):
        super().__init__(schemas, arrays=False, placed=("LearnerBatch.entries",))
        self._single = Records(schemas, arrays=False, skipped=_NOT_OF_ENTRY)

    def of(self, value: bytes) -> Record:
        record = super().of(value)
        places = np.array(record["entries"], np.int64)
        if len(places) > _SIDE_BY_SIDE:
            columns = self._schemas.columns(int.from_bytes(value[1:5], "big"), "BatchEntry", _COLUMNS_OF_ENTRY)
            try:
                record["entries"] = columns.read(value, places[:-1], places[1:])
                return record
            except NotSideBySide:
                pass
        record = self._single.of(value)
        record["entries"] = SingleRows(record["entries"])
        return record


class BatchLog:
    """Reads `batches` and their trajectories."""

    def __init__(self, kafka: Kafka, schemas: Schemas, identity: Identity, partition: int, group: Optional[str] = None):
        self._kafka = kafka
        self._identity = identity
        self._records = _BatchRecords(schemas)
        self._trajectories = Trajectories(kafka, schemas, identity)
        self._at = identity.topic("batches"), partition
        self.consumer = kafka.consumer(**({"group.id": group} if group else {}))
        self._next = -1

    def position(self, offset: int) -> None:
        """Searches for the next batch from here on."""
        self._next = offset

    def beginning(self) -> int:
        """First offset of this epoch."""
        low, _ = self._kafka.ends(self.consumer, *self._at)
        return max(low, self._identity.beginning(*self._at))

    def committed(self) -> int:
        """The offset that the group has committed; -1 if none."""
        try:
            found = self.consumer.committed([TopicPartition(*self._at)], self._kafka.timeout_s)[0]
        except KafkaException as e:
            raise self._kafka.away("asking for the offset that the learner's group has committed", e) from None
        return int(found.offset) if found.offset >= 0 else -1

    def partition(self) -> Tuple[str, int]:
        """Partition of the batches."""
        return self._at

    def available(self) -> Iterator[Tuple[Record, int]]:
        """The batches between the position and the current end, with their offsets."""
        begin = self.beginning()
        _, high = self._kafka.ends(self.consumer, *self._at)
        for messages in self._kafka.read(self.consumer, {self._at: (max(begin, self._next), high)}):
            for message in messages:
                batch = self._records.decode(message)
                self._next = message.offset() + 1
                if batch is not None and self._identity.owns(batch):
                    yield batch, message.offset()
        self._next = max(self._next, high)

    def close(self) -> None:
        self.consumer.close()
        self._trajectories.close()

    def joined(self, batch: Record, offset: int) -> Batch:
        """A batch with its trajectories, checked against each other and packed."""
        return _packed(batch, self._trajectories.fetch(batch), offset)


def _inconsistent(batch: Record, s: int, what: str) -> Malformed:
    entries: Rows = batch["entries"]
    return Malformed(f"batch {batch['batch_id']}, rollout {_shown(entries.texts('rollout_id')[s])} at partition "
                     f"{entries.numbers('partition')[s]} offset {entries.numbers('offset')[s]}: {what}")


def _same_rollouts(batch: Record, trajectories: Rows) -> None:
    entries: Rows = batch["entries"]
    if (same_texts(entries, trajectories, "rollout_id") and trajectories.all_are("run_id", batch["run_id"].encode())
            and trajectories.all_are("policy_id", batch["policy_id"].encode()) and (trajectories.numbers("epoch") == batch["epoch"]).all()):
        return
    wanted, found = entries.texts("rollout_id"), trajectories.texts("rollout_id")
    runs, policies = trajectories.texts("run_id"), trajectories.texts("policy_id")
    epochs = trajectories.numbers("epoch").tolist()
    expected = batch["run_id"].encode(), batch["epoch"], batch["policy_id"].encode()
    s = next(s for s in range(len(wanted)) if wanted[s] != found[s] or (runs[s], epochs[s], policies[s]) != expected)
    raise _inconsistent(batch, s, f"references rollout {_shown(found[s])} of run {_shown(runs[s])} epoch {epochs[s]} policy "
                        f"{_shown(policies[s])}")


def _shown(text: bytes) -> str:
    return text.decode("utf-8", "replace")


def _packed(batch: Record, trajectories: Rows, offset: int) -> Batch:
    entries: Rows = batch["entries"]
    _same_rollouts(batch, trajectories)
    prompt_lengths, lengths = trajectories.lengths("prompt_tokens") >> 2, trajectories.lengths("response_tokens") >> 2

    def uneven(s: int, values: int, what: str) -> Malformed:
        return _inconsistent(batch, s, f"has {lengths[s]} response tokens and {values} values of {what}")

    def whole(rows: Rows, name: str, what: str, width: int = 2) -> bool:
        """Which ones have the vector; it must have a value per response token."""
        s = rows.unlike(name, lengths, width)
        if s >= 0:
            raise uneven(s, int(rows.lengths(name)[s]) >> width, what)
        return s != ABSENT

    recorded = [name for name in _LOG_PROBS if whole(trajectories, name, name.replace("_", " "))]
    masked = entries.there("mask")
    is_masked = bool(masked.any())
    whole(trajectories, "mask", "the trajectory's mask" if is_masked else "mask", 0)
    mask = own = trajectories.joined(("mask",), np.int8)
    if is_masked:
        found = np.where(masked, entries.lengths("mask"), lengths)
        for s in np.flatnonzero(found != lengths)[:1].tolist():
            raise uneven(s, int(found[s]), "mask")
        mask = joined([b if b is not None else a for a, b in zip(trajectories.vectors("mask"), entries.vectors("mask"))], np.int8)
    response_offsets = _edges(lengths)
    if mask.view(np.uint8).max(initial=0) > 1 or mask is not own and (mask > own).any():
        at = int(np.flatnonzero((mask & ~1) | (mask > own))[0])
        s = int(np.searchsorted(response_offsets, at, "right")) - 1
        raise _inconsistent(batch, s, f"trains on response token {at - response_offsets[s]}, which the trajectory's own mask leaves out")
    trained = int(np.count_nonzero(mask))
    if trained != batch["trained_tokens"]:
        raise Malformed(f"batch {batch['batch_id']} declares {batch['trained_tokens']} trained tokens, its entries have {trained}")
    importance = None
    if len(entries) and whole(entries, "weights", "weights"):
        importance = entries.joined(("weights",), "<f4")
    rewards = np.array(entries.numbers("reward"), np.float64)
    of_sequence = np.asarray(entries.numbers("advantage"), np.float32)
    advantages = spread(of_sequence, lengths)
    finite = bool(np.isfinite(rewards).all() and np.isfinite(of_sequence).all()) and 0 <= batch["step_scale"] < np.inf
    if entries.there("credit.token_level_advantages").any():
        for s, packed in enumerate(entries.vectors("credit.token_level_advantages")):
            if packed is not None:
                own_advantages = vectors_of(batch, s, packed, int(lengths[s]))
                advantages[response_offsets[s]:response_offsets[s + 1]] = own_advantages
                finite = finite and bool(np.isfinite(own_advantages).all())
    if not finite:
        raise Malformed(f"batch {batch['batch_id']} has a reward, an advantage or a step scale that is not finite")
    widths = trajectories.numbers("version_spans.end") - trajectories.numbers("version_spans.start")
    if int(widths.sum()) != len(mask) or (widths < 0).any():
        raise Malformed(f"batch {batch['batch_id']} has trajectories whose version spans do not cover their responses")
    return Batch(
        batch_id=batch["batch_id"], expected_version=batch.get("expected_version", -1), step_scale=batch["step_scale"],
        tokens=trajectories.joined(("prompt_tokens", "response_tokens"), "<i4"), offsets=_edges(prompt_lengths + lengths),
        response_offsets=response_offsets, mask=mask, advantages=advantages,
        proximal_versions=np.array(trajectories.numbers("proximal_version"), np.int64), rewards=rewards,
        temperatures=np.array(trajectories.numbers("temperature"), np.float64), trained_tokens=trained,
        trainable_tokens=trained if own is mask else int(np.count_nonzero(own)), record={name: value for name, value in batch.items() if name != "entries"},
        offset=offset, recorded_weights=importance, kept_tokens=bool(trajectories.there("kept_tokens").any()),
        spans=(trajectories.numbers("version_spans.version"), widths), recorded=tuple(recorded), entries=entries, trajectories=trajectories)


def _edges(lengths: Ints) -> Ints:
    """Where each begins, and the last ends."""
    edges = np.zeros(len(lengths) + 1, np.int64)
    lengths.cumsum(out=edges[1:])
    return edges


def vectors_of(batch: Record, s: int, packed: Any, tokens: int) -> Floats:
    """A float vector of an entry, with its length checked."""
    found = np.frombuffer(packed, "<f4")
    if len(found) != tokens:
        raise _inconsistent(batch, s, f"has {tokens} response tokens and {len(found)} advantages of tokens")
    return found
