"""What an optimiser step consumes: a batch, packed."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Optional, Tuple

import numpy as np
from confluent_kafka import KafkaException, TopicPartition
from numpy.typing import NDArray

from millrace.avro import Record
from millrace.errors import Malformed, Missing
from millrace.log import Forward, Kafka, Records, Schemas
from millrace.versions import Identity

if TYPE_CHECKING:
    import torch

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]

#: what is read of a trajectory; the rest is passed over
_OF_TRAJECTORY = (
    "run_id", "epoch", "policy_id", "rollout_id", "prompt_tokens", "response_tokens", "mask", "temperature", "version_spans",
    "behavior_log_probs", "old_log_probs", "proximal_log_probs", "proximal_version", "reference_log_probs", "teacher_log_probs",
    "proximal_entropies", "kept_tokens",
)
_NOT_OF_ENTRY = tuple("BatchEntry." + name for name in ("rollout_partition", "rollout_offset", "oldest_version", "trained_tokens", "masked_by"))
_LOG_PROBS = ("behavior_log_probs", "proximal_log_probs", "old_log_probs", "reference_log_probs", "teacher_log_probs", "proximal_entropies")


@dataclass(frozen=True)
class Padded:
    """A batch as rectangles of ``[sequences, positions]``, short sequences filled up on the right with 0.

    Column ``i`` of everything but ``input_ids`` and ``attention_mask`` is about the token ``input_ids[:, i + 1]``, which a model's
    logits at position ``i`` predict: it has one column less.

    :ivar input_ids: prompt and response
    :ivar attention_mask: 1 where there is a token
    :ivar targets: ``input_ids[:, 1:]``
    :ivar mask: 1.0 where the token is trained on
    :ivar weights: importance weights; None where the run does not record them
    :ivar advantages: of the token
    :ivar behavior_log_probs: by the engine that sampled
    :ivar proximal_log_probs: by the learner's engine when it was scored
    :ivar old_log_probs: by the learner's engine at the version that sampled; None where a rollout has none
    :ivar temperature: of the sequence, ``[sequences, 1]``

    They are NumPy arrays, or torch tensors after :meth:`torch`.
    """

    input_ids: Any
    attention_mask: Any
    targets: Any
    mask: Any
    weights: Any
    advantages: Any
    behavior_log_probs: Any
    proximal_log_probs: Any
    old_log_probs: Any
    temperature: Any

    def torch(self, device: Any = "cpu") -> "Padded":
        """The same as torch tensors; whole numbers as int64."""
        import torch

        return Padded(**{name: None if value is None else torch.from_numpy(value).to(device) for name, value in vars(self).items()})


@dataclass(frozen=True)
class Batch:
    """A batch of one policy, packed: sequences one behind the other, without padding.

    ``tokens[offsets[s]:offsets[s + 1]]`` are prompt and response of sequence ``s``. Every vector of the response tokens, such as
    ``mask``, has its part of that sequence at ``[response_offsets[s], response_offsets[s + 1])``. Arrays are float32 where nothing else
    is said, belong to the caller, and each was made by one copy of what was on the log.

    :ivar batch_id: counts the policy's batches from 0
    :ivar expected_version: at which its step was expected to start
    :ivar step_scale: factor on the learning rate that the algorithm asks for
    :ivar tokens: int32
    :ivar offsets: int64, ``[sequences + 1]``
    :ivar response_offsets: int64, ``[sequences + 1]``
    :ivar mask: int8, 1 where the token is trained on
    :ivar advantages: one for each response token
    :ivar proximal_versions: int64, ``[sequences]``, the newest version when it was scored
    :ivar rewards: float64, ``[sequences]``
    :ivar temperatures: float64, ``[sequences]``
    :ivar trained_tokens: all of them; 0 in a batch that is starved
    :ivar rollout_ids: one for each sequence
    :ivar group_ids: likewise
    :ivar record: the batch as it is on the log, without its entries' vectors
    :ivar offset: where it is
    :ivar recorded_weights: as `weights`, None where the run does not record them
    :ivar kept_tokens: whether log-probs are over the tokens that truncation left, not over the whole vocabulary
    :ivar spans: versions and lengths of the parts of all responses that one version sampled
    :ivar recorded: the bytes of the log-probs and entropies that all of the batch have, by name and sequence; packed when they are asked for
    """

    batch_id: int
    expected_version: int
    step_scale: float
    tokens: NDArray[np.int32]
    offsets: Ints
    response_offsets: Ints
    mask: NDArray[np.int8]
    advantages: Floats
    proximal_versions: Ints
    rewards: NDArray[np.float64]
    temperatures: NDArray[np.float64]
    trained_tokens: int
    trainable_tokens: int
    rollout_ids: List[str]
    group_ids: List[str]
    record: Record
    offset: int
    recorded_weights: Optional[Floats]
    kept_tokens: bool
    spans: Tuple[Ints, Ints]
    recorded: Dict[str, List[Any]] = field(repr=False)

    def __len__(self) -> int:
        return len(self.rollout_ids)

    @property
    def weights(self) -> Floats:
        """Importance weights, one for each response token, 0 where it is not trained on.

        :raises Missing: where the run does not record them
        """
        if self.recorded_weights is None:
            raise Missing(f"batch {self.batch_id} has no importance weights; run the topology with topology.batch.record_weights=true, or "
                          "make them of the log-probs by the rule that record['stages'] names")
        return self.recorded_weights

    @cached_property
    def behavior_log_probs(self) -> Floats:
        """Natural logs by the engine that sampled."""
        return _joined(self.recorded["behavior_log_probs"], "<f4")

    @cached_property
    def proximal_log_probs(self) -> Floats:
        """By the learner's engine when it was scored."""
        return _joined(self.recorded["proximal_log_probs"], "<f4")

    @cached_property
    def old_log_probs(self) -> Optional[Floats]:
        """By the learner's engine at the version that sampled; None where one of the rollouts has none."""
        return self._packed("old_log_probs")

    @cached_property
    def reference_log_probs(self) -> Optional[Floats]:
        """By the reference policy; None where one of the rollouts has none."""
        return self._packed("reference_log_probs")

    @cached_property
    def teacher_log_probs(self) -> Optional[Floats]:
        """By the teacher; None where one of the rollouts has none."""
        return self._packed("teacher_log_probs")

    @cached_property
    def proximal_entropies(self) -> Optional[Floats]:
        """In nats, of the policy of the proximal log-probs; None where one of the rollouts has none."""
        return self._packed("proximal_entropies")

    def _packed(self, name: str) -> Optional[Floats]:
        return _joined(self.recorded[name], "<f4") if name in self.recorded else None

    @cached_property
    def versions(self) -> Ints:
        """The version that sampled each response token."""
        return _spread(*self.spans)

    def staleness(self, version: int) -> Ints:
        """Of each token that is trained on: a version, that of the step's start, less the one that sampled it."""
        behind: Ints = version - self.versions[self.mask != 0]
        return behind

    def padded(self) -> Padded:
        """The batch as rectangles, for a model that takes ``[sequences, positions]``."""
        lengths, responses = np.diff(self.offsets), np.diff(self.response_offsets)
        width = int(lengths.max(initial=1))
        rows = np.repeat(np.arange(len(self)), lengths)
        columns = np.arange(len(self.tokens)) - np.repeat(self.offsets[:-1], lengths)
        input_ids = np.zeros((len(self), width), np.int64)
        input_ids[rows, columns] = self.tokens
        attention = np.zeros((len(self), width), np.int64)
        attention[rows, columns] = 1
        rows = np.repeat(np.arange(len(self)), responses)
        columns = (np.arange(len(self.mask)) - np.repeat(self.response_offsets[:-1], responses)
                   + np.repeat(lengths - responses - 1, responses))

        def spread(packed: Optional[NDArray[Any]]) -> Optional[Floats]:
            if packed is None:
                return None
            padded = np.zeros((len(self), width - 1), np.float32)
            padded[rows, columns] = packed
            return padded

        return Padded(input_ids=input_ids, attention_mask=attention, targets=input_ids[:, 1:].copy(), mask=spread(self.mask),
                      weights=spread(self.recorded_weights), advantages=spread(self.advantages),
                      behavior_log_probs=spread(self.behavior_log_probs), proximal_log_probs=spread(self.proximal_log_probs),
                      old_log_probs=spread(self.old_log_probs), temperature=self.temperatures.astype(np.float32)[:, None])

    def torch(self, device: Any = "cpu") -> Dict[str, "torch.Tensor"]:
        """The packed arrays as torch tensors by name; of the memory of the arrays where the device is the CPU."""
        import torch

        arrays = {name: value for name, value in vars(self).items() if isinstance(value, np.ndarray)}
        arrays["versions"] = self.versions
        arrays.update({name: getattr(self, name) for name in self.recorded})
        if self.recorded_weights is not None:
            arrays["weights"] = arrays.pop("recorded_weights")
        return {name: torch.from_numpy(value).to(device) for name, value in arrays.items()}


class Trajectories:
    """Fetches what batches point at. They lie nearly in the order of the batches, so the topic is read once, forwards, and what lies
    between is kept for a later batch, the newest `kept_bytes` of it."""

    def __init__(self, kafka: Kafka, schemas: Schemas, identity: Identity, kept_bytes: int = 256 << 20):
        self._topic = identity.topic("trajectories")
        self._forward = Forward(kafka, self._topic)
        self._records = Records(schemas, _OF_TRAJECTORY, arrays=False)
        self._kept_bytes = kept_bytes
        self._waiting: Dict[Tuple[int, int], bytes] = {}
        self._waiting_bytes = 0

    def fetch(self, batch: Record) -> List[Record]:
        """Those of a batch, in its order.

        :raises Missing: if the log no longer has one
        """
        wanted = [(entry["partition"], entry["offset"]) for entry in batch["entries"]]
        for partition in sorted({at[0] for at in wanted}):
            offsets = [at[1] for at in wanted if at[0] == partition and at not in self._waiting]
            if offsets:
                self._read(partition, min(offsets), max(offsets), batch)
        found = []
        for at in wanted:
            value = self._waiting.pop(at, None)
            if value is None:
                raise Missing(f"batch {batch['batch_id']} points at {self._topic}-{at[0]}@{at[1]}, and there is no record")
            self._waiting_bytes -= len(value)
            found.append(self._records.of(value))
        for at in list(self._waiting) if self._waiting_bytes > self._kept_bytes else ():
            self._waiting_bytes -= len(self._waiting.pop(at))
            if self._waiting_bytes <= self._kept_bytes:
                break
        return found

    def _read(self, partition: int, first: int, last: int, batch: Record) -> None:
        waiting = self._waiting
        try:
            for messages in self._forward.read(partition, first, last):
                for message in messages:
                    value = message.value()
                    if value is not None:
                        waiting[partition, message.offset()] = value
                        self._waiting_bytes += len(value)
        except Missing as e:
            raise Missing(f"batch {batch['batch_id']} points at a trajectory that cannot be had: {e}") from None

    def close(self) -> None:
        self._forward.close()


class BatchLog:
    """Reads `batches` and what they point at."""

    def __init__(self, kafka: Kafka, schemas: Schemas, identity: Identity, partition: int, group: Optional[str] = None):
        self._kafka = kafka
        self._identity = identity
        self._records = Records(schemas, arrays=False, skipped=_NOT_OF_ENTRY)
        self._trajectories = Trajectories(kafka, schemas, identity)
        self._at = identity.topic("batches"), partition
        self.consumer = kafka.consumer(**({"group.id": group} if group else {}))
        self._next = -1

    def position(self, offset: int) -> None:
        """The next batch is looked for from there on."""
        self._next = offset

    def beginning(self) -> int:
        """First offset that may be this epoch's."""
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
        """Where the batches are."""
        return self._at

    def available(self) -> Iterator[Tuple[Record, int]]:
        """The batches between the position and the end there is now, with their offsets."""
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


def _joined(parts: List[Any], dtype: Any) -> NDArray[Any]:
    return np.frombuffer(bytearray().join(parts), dtype)


def _spread(values: NDArray[Any], lengths: Ints) -> NDArray[Any]:
    """Each value so many times."""
    if len(lengths) == 0 or lengths.mean() < 64:
        return np.repeat(values, lengths)
    spread = np.empty(int(lengths.sum()), values.dtype)
    at = 0
    for value, length in zip(values, lengths.tolist()):
        spread[at:at + length] = value
        at += length
    return spread


def _inconsistent(batch: Record, s: int, what: str) -> Malformed:
    entry = batch["entries"][s]
    return Malformed(f"batch {batch['batch_id']}, rollout {entry['rollout_id']} at partition {entry['partition']} offset "
                     f"{entry['offset']}: {what}")


def _packed(batch: Record, trajectories: List[Record], offset: int) -> Batch:
    entries = batch["entries"]
    for s, (entry, trajectory) in enumerate(zip(entries, trajectories)):
        if (trajectory["rollout_id"] != entry["rollout_id"] or trajectory["run_id"] != batch["run_id"]
                or trajectory["epoch"] != batch["epoch"] or trajectory["policy_id"] != batch["policy_id"]):
            raise _inconsistent(batch, s, f"points at rollout {trajectory['rollout_id']} of run {trajectory['run_id']} epoch "
                                f"{trajectory['epoch']} policy {trajectory['policy_id']}")
    prompts = [t["prompt_tokens"] for t in trajectories]
    responses = [t["response_tokens"] for t in trajectories]
    lengths = np.array(list(map(len, responses)), np.int64) >> 2
    masks = [entry["mask"] if entry["mask"] is not None else t["mask"] for entry, t in zip(entries, trajectories)]
    both: List[Any] = [part for pair in zip(prompts, responses) for part in pair]

    def vectors(name: str, parts: List[Any], width: int = 2) -> List[Any]:
        found = np.array(list(map(len, parts)), np.int64)
        wrong = np.flatnonzero(found != lengths << width)
        if len(wrong):
            s = int(wrong[0])
            raise _inconsistent(batch, s, f"has {lengths[s]} response tokens and {found[s] >> width} values of {name}")
        return parts

    recorded = {}
    for name in _LOG_PROBS:
        parts = [t[name] for t in trajectories]
        if None not in parts:
            recorded[name] = vectors(name.replace("_", " "), parts)
    mask = _joined(vectors("mask", masks, 0), np.int8)
    own = mask
    if any(entry["mask"] is not None for entry in entries):
        own = _joined(vectors("the trajectory's mask", [t["mask"] for t in trajectories], 0), np.int8)
    response_offsets = np.concatenate([[0], np.cumsum(lengths)])
    if ((mask & ~own) | (mask & ~1)).any():  # each 0 or 1
        at = int(np.flatnonzero((mask & ~own) | (mask & ~1))[0])
        s = int(np.searchsorted(response_offsets, at, "right")) - 1
        raise _inconsistent(batch, s, f"trains on response token {at - response_offsets[s]}, which the trajectory's own mask leaves out")
    trained = int(np.count_nonzero(mask))
    if trained != batch["trained_tokens"]:
        raise Malformed(f"batch {batch['batch_id']} declares {batch['trained_tokens']} trained tokens, its entries have {trained}")
    weights = [entry["weights"] for entry in entries]
    importance = None if not weights or None in weights else _joined(vectors("weights", weights), "<f4")
    rewards = np.array([entry["reward"] for entry in entries], np.float64)
    of_sequence = np.array([entry["advantage"] for entry in entries], np.float32)
    advantages = _spread(of_sequence, lengths)
    finite = bool(np.isfinite(rewards).all() and np.isfinite(of_sequence).all()) and 0 <= batch["step_scale"] < np.inf
    for s, entry in enumerate(entries):
        credit = entry["credit"]
        if credit is not None and credit["token_level_advantages"] is not None:
            own_advantages = vectors_of(batch, s, credit["token_level_advantages"], int(lengths[s]))
            advantages[response_offsets[s]:response_offsets[s + 1]] = own_advantages
            finite = finite and bool(np.isfinite(own_advantages).all())
    if not finite:
        raise Malformed(f"batch {batch['batch_id']} has a reward, an advantage or a step scale that is not finite")
    spans = [span for t in trajectories for span in t["version_spans"]]
    widths = np.array([span["end"] - span["start"] for span in spans], np.int64)
    if int(widths.sum()) != len(mask) or (widths < 0).any():
        raise Malformed(f"batch {batch['batch_id']} has trajectories whose version spans do not cover their responses")
    return Batch(
        batch_id=batch["batch_id"], expected_version=batch.get("expected_version", -1), step_scale=batch["step_scale"],
        tokens=_joined(both, "<i4"),
        offsets=np.concatenate([[0], np.cumsum((np.array(list(map(len, prompts)), np.int64) >> 2) + lengths)]),
        response_offsets=response_offsets, mask=mask, advantages=advantages,
        proximal_versions=np.array([t["proximal_version"] for t in trajectories], np.int64), rewards=rewards,
        temperatures=np.array([t["temperature"] for t in trajectories], np.float64), trained_tokens=trained,
        trainable_tokens=int(np.count_nonzero(own)), rollout_ids=[entry["rollout_id"] for entry in entries],
        group_ids=[entry["group_id"] for entry in entries],
        record={name: value for name, value in batch.items() if name != "entries"}, offset=offset, recorded_weights=importance,
        kept_tokens=any(t["kept_tokens"] is not None for t in trajectories),
        spans=(np.array([span["version"] for span in spans], np.int64), widths), recorded=recorded)


def vectors_of(batch: Record, s: int, packed: Any, tokens: int) -> Floats:
    """A float vector of an entry, of the length that it must have."""
    found = np.frombuffer(packed, "<f4")
    if len(found) != tokens:
        raise _inconsistent(batch, s, f"has {tokens} response tokens and {len(found)} advantages of tokens")
    return found
