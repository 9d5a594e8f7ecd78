"""The input of an optimizer step: a packed batch."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Tuple

import numpy as np
from numpy.typing import NDArray

from millrace_rl.avro import Record
from millrace_rl.errors import Malformed, Missing
from millrace_rl.rows import Ints, Rows

if TYPE_CHECKING:
    import torch

Floats = NDArray[np.float32]

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
    """A batch of one policy, packed: sequences end to end, without padding.

    ``tokens[offsets[s]:offsets[s + 1]]`` are prompt and response of sequence ``s``. Every vector of the response tokens, such as ``mask``,
    has its part of that sequence at ``[response_offsets[s], response_offsets[s + 1])``. Arrays are float32 unless noted, and owned by the
    caller.

    :ivar batch_id: counts the policy's batches from 0
    :ivar expected_version: at which its step was expected to start
    :ivar step_scale: the algorithm's factor on the learning rate
    :ivar tokens: int32
    :ivar offsets: int64, ``[sequences + 1]``
    :ivar response_offsets: int64, ``[sequences + 1]``
    :ivar mask: int8, 1 where the token is trained on
    :ivar advantages: one for each response token
    :ivar proximal_versions: int64, ``[sequences]``, the newest version when it was scored
    :ivar rewards: float64, ``[sequences]``
    :ivar temperatures: float64, ``[sequences]``
    :ivar trained_tokens: in total; 0 in a starved batch
    :ivar record: the batch record, without its entries' vectors
    :ivar offset: where it is
    :ivar recorded_weights: as `weights`, None where the run does not record them
    :ivar kept_tokens: whether log-probs are over the tokens kept by truncation, not over the whole vocabulary
    :ivar spans: versions and lengths of the parts of all responses that one version sampled
    :ivar recorded: names of the log-probs and entropies that every rollout has; packed on access
    :ivar entries: the batch's, as on the log
    :ivar trajectories: referenced ones, likewise
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
    record: Record
    offset: int
    recorded_weights: Optional[Floats]
    kept_tokens: bool
    spans: Tuple[Ints, Ints]
    recorded: Tuple[str, ...] = field(repr=False)
    entries: Rows = field(repr=False)
    trajectories: Rows = field(repr=False)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def rollout_ids(self) -> List[str]:
        """One for each sequence."""
        return self._named("rollout_id")

    @cached_property
    def group_ids(self) -> List[str]:
        """One for each sequence."""
        return self._named("group_id")

    def _named(self, name: str) -> List[str]:
        try:
            return [each.decode() for each in self.entries.texts(name)]
        except UnicodeDecodeError as e:
            raise Malformed(f"batch {self.batch_id} has a {name} that is no UTF-8: {e}") from None

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
        return self.trajectories.joined(("behavior_log_probs",), "<f4")

    @cached_property
    def proximal_log_probs(self) -> Floats:
        """By the learner's engine when it was scored."""
        return self.trajectories.joined(("proximal_log_probs",), "<f4")

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
        return self.trajectories.joined((name,), "<f4") if name in self.recorded else None

    @cached_property
    def versions(self) -> Ints:
        """The version that sampled each response token."""
        return spread(*self.spans)

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

        def rectangle(packed: Optional[NDArray[Any]]) -> Optional[Floats]:
            if packed is None:
                return None
            padded = np.zeros((len(self), width - 1), np.float32)
            padded[rows, columns] = packed
            return padded

        return Padded(input_ids=input_ids, attention_mask=attention, targets=input_ids[:, 1:].copy(), mask=rectangle(self.mask),
                      weights=rectangle(self.recorded_weights), advantages=rectangle(self.advantages),
                      behavior_log_probs=rectangle(self.behavior_log_probs), proximal_log_probs=rectangle(self.proximal_log_probs),
                      old_log_probs=rectangle(self.old_log_probs), temperature=self.temperatures.astype(np.float32)[:, None])

    def torch(self, device: Any = "cpu") -> Dict[str, "torch.Tensor"]:
        """The packed arrays as torch tensors by name; of the memory of the arrays where the device is the CPU."""
        import torch

        arrays = {name: value for name, value in vars(self).items() if isinstance(value, np.ndarray)}
        arrays["versions"] = self.versions
        arrays.update({name: getattr(self, name) for name in self.recorded})
        if self.recorded_weights is not None:
            arrays["weights"] = arrays.pop("recorded_weights")
        return {name: torch.from_numpy(value).to(device) for name, value in arrays.items()}


def spread(values: NDArray[Any], lengths: Ints) -> NDArray[Any]:
    """Repeats each value by its count."""
    total = int(lengths.sum())
    if total <= 128 * len(lengths):
        return values.repeat(lengths)
    spread = np.empty(total, values.dtype)
    at = 0
    for value, length in zip(values, lengths.tolist()):
        spread[at:at + length] = value
        at += length
    return spread
