"""A generator that works with or instead of Millrace's own."""

from __future__ import annotations

import math
import threading
import time
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Tuple

import numpy as np
from numpy.typing import NDArray

from millrace_rl.avro import Record
from millrace_rl.avro_writer import packed_bytes
from millrace_rl.errors import Malformed, Missing, NotCommitted, Refused, Unreachable
from millrace_rl.kafka import KafkaError
from millrace_rl.log import LOG, Kafka, Records, Schemas, refuse
from millrace_rl.producing import Offsets, Transactions
from millrace_rl.tensors import Arrays
from millrace_rl.versions import Identity, Versions, shape_of

_HEARTBEAT_S = 2.0
_REBALANCED = (KafkaError.ILLEGAL_GENERATION, KafkaError.UNKNOWN_MEMBER_ID, KafkaError.REBALANCE_IN_PROGRESS)
#: a log-prob of a certain token may miss 0 by rounding
_ROUNDING = 1e-5


@dataclass(frozen=True)
class Request:
    """A request for a group of rollouts of one prompt.

    :ivar group_id: names the group
    :ivar prompt_tokens: int32
    :ivar samples: rollouts wanted
    :ivar temperature: logits are divided by it
    :ivar max_tokens: most response tokens
    :ivar environment: environment that continues and verifies the rollouts
    :ivar environment_state: input of the environment, such as the expected answer
    :ivar record: the whole record
    """

    group_id: str
    prompt_tokens: NDArray[np.int32]
    samples: int
    temperature: float
    max_tokens: int
    environment: str
    environment_state: str
    record: Record


def completed(rollout: Mapping[str, Any], identity: Identity, vocabulary: int, now_ms: int) -> Record:
    """Completes a rollout with derived fields, and validates it as the topology does.

    :raises Refused: naming the first invalid field
    """
    whole: Record = {**identity.fields(policy=False), **rollout}
    if not identity.owns(whole):
        raise Refused(f"the rollout is of run {whole['run_id']} epoch {whole['epoch']}, and this run is {identity.run_id} epoch "
                      f"{identity.epoch}")
    for needed in ("group_id", "sample_index", "group_size", "ordinal", "environment", "tokenizer_hash", "prompt_tokens", "response_tokens",
                   "behavior_log_probs", "sampling", "reward", "admitted_version"):
        if needed not in whole:
            raise Refused(f"a rollout needs the field {needed}")
    whole.setdefault("rollout_id", f"{whole['group_id']}/{whole['sample_index']}")
    for field, logical in (("prompt_tokens", "packed-int32"), ("response_tokens", "packed-int32"), ("behavior_log_probs", "packed-float32")):
        whole[field] = packed_bytes(whole[field], logical, field)
    prompt, response = (np.frombuffer(whole[f], "<i4") for f in ("prompt_tokens", "response_tokens"))
    for field, tokens in (("prompt_tokens", prompt), ("response_tokens", response)):
        if len(tokens) == 0:
            raise Refused(f"{field} must hold a token")
        if tokens.min() < 0 or (vocabulary and tokens.max() >= vocabulary):
            at = int(np.flatnonzero((tokens < 0) | (tokens >= (vocabulary or 1 << 31)))[0])
            raise Refused(f"{field}[{at}] is {tokens[at]}, and a token id is at least 0 and below {vocabulary}")
    count = len(response)
    whole["mask"] = packed_bytes(np.ones(count, np.int8) if whole.get("mask") is None else whole["mask"], "packed-int8", "mask")
    mask = np.frombuffer(whole["mask"], np.int8)
    if len(mask) != count or ((mask != 0) & (mask != 1)).any():
        raise Refused(f"mask must be 0 or 1 for each of the {count} response tokens")
    for field in ("behavior_log_probs", "tempered_log_probs"):
        if whole.get(field) is None:
            continue
        whole[field] = packed_bytes(whole[field], "packed-float32", field)
        log_probs = np.frombuffer(whole[field], "<f4")
        if len(log_probs) != count:
            raise Refused(f"{field} must have one value for each response token: {len(log_probs)} values, {count} tokens")
        wrong = np.flatnonzero((mask == 1) & ~((log_probs <= _ROUNDING) & (log_probs > -np.inf)))
        if len(wrong):
            raise Refused(f"{field}[{wrong[0]}] is {log_probs[wrong[0]]}, and the natural log of a probability is finite and at most 0")
    sampling = whole["sampling"]
    truncated = sampling["top_k"] != 0 or sampling["top_p"] != 1 or sampling.get("min_p", 0) != 0
    whole.setdefault("log_prob_distribution", "TRUNCATED" if truncated else "RAW" if sampling["temperature"] == 1 else "TEMPERED")
    if whole["log_prob_distribution"] == "TRUNCATED" and whole.get("tempered_log_probs") is None and not sampling.get("keep_sampling_mask"):
        raise Refused("tempered_log_probs are needed where top_k, top_p or min_p leave tokens out: scores are over the whole vocabulary")
    if sampling["max_tokens"] < count:
        raise Refused(f"there are {count} response tokens, and sampling.max_tokens is {sampling['max_tokens']}")
    whole.setdefault("turns", [dict(speaker="POLICY", start=0, end=count, details=None)])
    if "version_spans" not in whole:
        raise Refused("a rollout needs the field version_spans: which version sampled which tokens")
    for field in ("turns", "version_spans"):
        at = 0
        for part in whole[field]:
            if part["start"] != at or part["end"] < at:
                raise Refused(f"{field} must be in order and cover the response: one begins at {part['start']}, and {at} was due")
            at = part["end"]
        if at != count:
            raise Refused(f"{field} must cover the {count} response tokens, and they end at {at}")
    reward = whole["reward"]
    if not isinstance(reward, (int, float, np.integer, np.floating)) or not math.isfinite(reward):
        raise Refused(f"reward must be a finite number: {reward!r}")
    whole["reward"] = float(reward)
    whole["reward_components"] = {name: float(value) for name, value in whole.get("reward_components", {}).items()}
    for name, value in whole["reward_components"].items():
        if not math.isfinite(value):
            raise Refused(f"reward_components.{name} must be finite: {value}")
    whole.setdefault("finish_reason", "LENGTH" if count == sampling["max_tokens"] else "STOP")
    whole.setdefault("generator_id", "python")
    whole.setdefault("started_at_ms", now_ms)
    whole.setdefault("finished_at_ms", now_ms)
    return whole


class Generator:
    """Samples a run's prompts: yields requests, takes rollouts, and commits them with the prompts' offsets in one transaction.

    After a kill its open prompts are sampled again, by itself or by another generator, and no rollout is duplicated. Every generator of a
    run has a unique id; a second one with the same id fences the first.

    A thread writes a heartbeat to ``serving`` every two seconds, so that the version in use is kept.

    One thread uses it. Made by :meth:`millrace_rl.Run.generator`; close it, or use it in a ``with``.
    """

    def __init__(self, kafka: Kafka, schemas: Schemas, identity: Identity, generator_id: str, partition: int,
                 on_version: Optional[Callable[[int, Arrays], Any]]):
        if not generator_id or "/" in generator_id:
            raise Refused(f"a generator's id is a name without a slash: {generator_id!r}")
        self._kafka = kafka
        self._schemas = schemas
        self._identity = identity
        self._on_version = on_version
        self.id = generator_id
        self._transactions = Transactions(kafka, f"{identity.prefix}generator-{generator_id}", identity.topic("run"),
                                          f"generator {generator_id} of run {identity.run_id}", False, kafka.timeout_s, 60)
        self._versions = Versions(kafka, schemas, identity, partition)
        self._records = Records(schemas)
        self._prompts = kafka.consumer(**{"group.id": identity.group("generator"), "auto.offset.reset": "earliest",
                                          "enable.partition.eof": False})
        self._prompts.subscribe([identity.topic("prompts")])
        self._manifest: Optional[Record] = None
        self._open: List[Request] = []
        self._answered: Dict[str, Dict[int, Record]] = {}
        self._offsets: Dict[Tuple[str, int], int] = {}
        self._group: Any = None
        self._begun_ms = 0
        self._said_version = -1
        self._tokens = 0
        self._since_ms = int(time.time() * 1000)
        self._stop = threading.Event()
        self._heart = threading.Thread(target=self._beat, name="millrace-heartbeat", daemon=True)

    @property
    def version(self) -> int:
        """The version that is loaded; -1 before the first."""
        return -1 if self._manifest is None else int(self._manifest["version"])

    @property
    def shape(self) -> Dict[str, Any]:
        """The decoder's shape, under the names of Hugging Face's config.json."""
        return shape_of(self._known())

    def weights(self) -> Arrays:
        """Weights of the loaded version, float32 by safetensors name; read-only."""
        return self._versions.weights(int(self._known()["version"]))

    def _known(self) -> Record:
        if self._manifest is None:
            raise Missing(f"run {self._identity.run_id} has no version yet")
        return self._manifest

    def requests(self, at_once: int = 32, timeout_s: Optional[float] = None) -> Iterator[List[Request]]:
        """Yields lists of requests, at most `at_once` each; waits for them and loads new versions meanwhile.

        :meth:`submit` every sample of each request before the next iteration, which commits them. A request is handed out only when the
        weights are as new as its `admitted_version`; that bounds staleness.

        :param timeout_s: ends after this time without a request; None for no end
        """
        if not self._heart.is_alive():
            self._update()
            self._heart.start()
        waited_since = time.monotonic()
        while True:
            first = self._prompts.poll(0.1)
            messages = [] if first is None else [first, *(self._prompts.consume(at_once - 1, 0) if at_once > 1 else [])]
            self._update()
            if messages:
                requests = self._taken(messages)
                if requests:
                    self._wait_for(max(request.record["admitted_version"] for request in requests))
                    self._begun_ms = int(time.time() * 1000)
                    yield requests
                self._commit()
                waited_since = time.monotonic()
            elif timeout_s is not None and time.monotonic() - waited_since > timeout_s:
                return

    def _taken(self, messages: List[Any]) -> List[Request]:
        self._open, self._answered, self._offsets = [], {}, {}
        self._group = self._prompts.consumer_group_metadata()  # checked now: after a rebalance another generator may own them
        for message in messages:
            error = message.error()
            if error is not None and error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
                raise Unreachable(f"generator {self.id} may not join the group {self._identity.group('generator')}: {error.str()}; allow "
                                  "READ on groups with the run's prefix")
            if error is not None:
                refuse((self._identity.topic("prompts"), message.partition()), error)
                continue
            self._offsets[message.topic(), message.partition()] = message.offset() + 1
            record = self._records.decode(message)
            if record is not None and self._identity.owns(record):
                sampling = record["sampling"]
                self._open.append(Request(record["group_id"], record["prompt_tokens"], record["samples"], sampling["temperature"],
                                          sampling["max_tokens"], record["environment"], record["environment_state"], record))
                self._answered[record["group_id"]] = {}
        return list(self._open)

    def _update(self) -> None:
        newest = self._versions.follow()
        if newest is None or newest["version"] <= self.version:
            return
        try:
            weights = self._versions.weights(newest["version"])
        except (Missing, Malformed) as e:
            LOG.warning("continues with version %d, because the next cannot be loaded: %s", self.version, e)
            return
        self._manifest = newest
        if self._on_version is not None:
            self._on_version(self.version, weights)

    def _wait_for(self, version: int) -> None:
        since = time.monotonic()
        while self.version < version:
            time.sleep(0.05)
            self._update()
            if time.monotonic() - since > self._kafka.timeout_s:
                LOG.warning("has waited %.0f s for version %d, which a prompt asks for; the newest is %d", time.monotonic() - since, version,
                            self.version)
                since = time.monotonic()

    def submit(self, request: Request, sample_index: int, tokens: Any, log_probs: Any, reward: float, **more: Any) -> None:
        """Adds one rollout of a request; it is written when the group is complete.

        :param sample_index: from 0, below ``request.samples``
        :param tokens: the response, exactly as it was sampled or inserted
        :param log_probs: natural logs by the engine that sampled, at the request's temperature; 0 where the policy did not sample
        :param more: further fields of the record, such as ``mask``, ``turns``, ``reward_components``, ``finish_reason``, ``credit``, or
            ``version_spans`` where the weights changed on the way
        :raises Refused: naming the invalid field
        """
        if request.group_id not in self._answered:
            raise Refused(f"group {request.group_id} is none of those that were asked for last")
        if not 0 <= sample_index < request.samples:
            raise Refused(f"sample_index must be from 0 to {request.samples - 1}: {sample_index}")
        record, now_ms = request.record, int(time.time() * 1000)
        count = len(tokens)
        rollout = completed(
            {"group_id": request.group_id, "ordinal": record["ordinal"], "sample_index": sample_index, "group_size": request.samples,
             "generator_id": self.id, "environment": request.environment, "tokenizer_hash": record["tokenizer_hash"],
             "prompt_tokens": request.prompt_tokens, "response_tokens": tokens, "behavior_log_probs": log_probs,
             "sampling": record["sampling"], "reward": reward, "admitted_version": record["admitted_version"],
             "version_spans": [dict(version=self.version, start=0, end=count)], "started_at_ms": self._begun_ms,
             "finished_at_ms": now_ms, "task": record.get("task"), **more},
            self._identity, int(self.shape["vocab_size"]), now_ms)
        self._answered[request.group_id][sample_index] = rollout
        self._tokens += count

    def _commit(self) -> None:
        for request in self._open:
            there = self._answered[request.group_id]
            if len(there) < request.samples:
                raise Refused(f"group {request.group_id} wants {request.samples} samples, and {len(there)} were submitted; submit one with "
                              "finish_reason='FAILED' where there is none")
        topic = self._identity.topic("rollouts")

        def write() -> None:
            for request in self._open:
                for _, rollout in sorted(self._answered[request.group_id].items()):
                    self._transactions.send(topic, self._schemas.encode(topic, rollout), request.group_id)
            self._transactions.send(self._serving(), self._said(False), f"{self.id}/{self._identity.epoch}")

        def offsets() -> Tuple[Offsets, Any]:
            return [(at[0], at[1], offset) for at, offset in self._offsets.items()], self._group

        try:
            self._transactions.write(f"what was sampled of {len(self._open)} prompts", write, offsets)
        except NotCommitted as e:
            if e.code not in _REBALANCED:
                raise
            LOG.info("prompts went to another generator before their rollouts were committed, and are sampled there: %s", e)
        self._open = []

    def _serving(self) -> str:
        return self._identity.topic("serving")

    def _said(self, left: bool) -> bytes:
        if self._said_version != self.version:
            self._said_version, self._since_ms = self.version, int(time.time() * 1000)
        return self._schemas.encode(self._serving(), dict(
            self._identity.fields(), server_id=self.id, role="GENERATOR", version=self.version, since_ms=self._since_ms,
            heartbeat_ms=int(time.time() * 1000), tokens=self._tokens, left=left))

    def _beat(self) -> None:
        producer = self._kafka.producer()
        while not self._stop.wait(_HEARTBEAT_S):
            self._tell(producer, False)
        self._tell(producer, True)
        producer.flush(self._kafka.timeout_s)

    def _tell(self, producer: Any, left: bool) -> None:
        if self.version < 0:
            return
        try:
            producer.produce(self._serving(), value=self._said(left), key=f"{self.id}/{self._identity.epoch}")
            producer.poll(0)
        except Exception as e:  # the next one may succeed; the learner notices missing heartbeats
            LOG.warning("a heartbeat was not written: %s", e)

    def close(self) -> None:
        """Aborts uncommitted work, and announces that the generator has left."""
        self._stop.set()
        if self._heart.is_alive():
            self._heart.join(self._kafka.timeout_s)
        self._transactions.close()
        self._prompts.close()

    def __enter__(self) -> "Generator":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()
