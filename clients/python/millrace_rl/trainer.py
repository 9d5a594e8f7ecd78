"""A trainer that replaces the learner."""

from __future__ import annotations

import hashlib
import math
import time
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple

import numpy as np
from numpy.typing import NDArray

from millrace_rl.avro import Record
from millrace_rl.batch import Batch
from millrace_rl.batch_log import BatchLog
from millrace_rl.errors import Malformed, Missing, Refused
from millrace_rl.log import LOG, Kafka, Records, Schemas, partition_of
from millrace_rl.producing import Offsets, Transactions
from millrace_rl.tensors import Arrays, Weights, as_float32, fitted, make_delta
from millrace_rl.versions import Identity, Versions, shape_of

_CHUNK_BYTES = 512 * 1024
_POLL_S = 0.05


class Trainer:
    """Takes the batches in order, and publishes a version for each.

    All results of a step (weights, further state, manifest, training-log record, batch offset) are one Kafka transaction. After a kill, a
    restarted trainer finds a version and the next batch. Creating one fences every other trainer of the run, including Millrace's own,
    which then ends with a message.

    One thread uses it. Made by :meth:`millrace_rl.Run.trainer`; close it, or use it in a ``with``.
    """

    def __init__(self, kafka: Kafka, schemas: Schemas, identity: Identity, partitions: Mapping[str, int], anchor_every: int,
                 transaction_timeout_s: float):
        if anchor_every < 1:
            raise Refused(f"anchor_every must be at least 1, every version whole: {anchor_every}")
        self._kafka = kafka
        self._schemas = schemas
        self._identity = identity
        self._anchor_every = anchor_every
        self._partitions = {name: partition_of(identity.policy_id, partitions[identity.topic(name)])
                            for name in ("policy-versions", "weights", "optimizer-state", "training-log", "batches")}
        prefix = identity.prefix
        self._transactions = Transactions(kafka, prefix + "learner", identity.topic("run"), f"the trainer of run {identity.run_id}", True,
                                          kafka.timeout_s, transaction_timeout_s)
        try:
            # only now: an earlier trainer's transaction is committed or aborted
            self._versions = Versions(kafka, schemas, identity, self._partitions["policy-versions"])
            newest = self._versions.follow()
            if newest is None:
                raise Missing(f"run {identity.run_id} has no version yet; './millrace learn --first-version' publishes the initial weights")
            self._newest: Record = newest
            self._consumed_batch, self._consumed_rollouts = self._consumed()
            self._log = BatchLog(kafka, schemas, identity, self._partitions["batches"], identity.group("learner"))
            self._log.position(self._log.committed())
        except BaseException:
            self._transactions.close()
            raise
        self._taken: Optional[Batch] = None
        self._taken_at = 0.0
        self._began_at_ms = 0
        LOG.info("continues from version %d, batch %d is next", self.version, self._consumed_batch + 1)

    @property
    def version(self) -> int:
        """The newest version."""
        return int(self._newest["version"])

    @property
    def shape(self) -> Dict[str, Any]:
        """The decoder's shape, under the names of Hugging Face's config.json."""
        return shape_of(self._newest)

    @property
    def steps(self) -> int:
        """Optimizer steps taken up to the newest version."""
        return int(self._newest["optimizer_steps"])

    def weights(self) -> Arrays:
        """Returns the weights of the newest version, float32 by their safetensors names, as writable copies.

        For an adapter these are its own tensors, which are trained.
        """
        return {name: array.copy() for name, array in self._versions.tensors(self.version).items()}

    def state(self) -> Arrays:
        """Returns the `state` published with the newest version; empty without one."""
        return {name: array.copy() for name, array in self._versions.state(self.version).items()}

    def batches(self, timeout_s: Optional[float] = None) -> Iterator[Batch]:
        """Yields the next batches in order and waits for new ones; call :meth:`publish` after each.

        A starved batch, without a token to train on, is consumed without a version and not yielded.

        :param timeout_s: ends after this time without a batch; None for no end
        :raises Missing: if the log has lost the next batch
        """
        waited_since = time.monotonic()
        searched = False
        while True:
            found: Optional[Tuple[Record, int]] = None
            ahead: Optional[int] = None
            for record, offset in self._log.available():
                if record["batch_id"] == self._consumed_batch + 1:
                    found = record, offset
                    break
                if record["batch_id"] > self._consumed_batch + 1:
                    ahead = record["batch_id"]
                    break
            if found is None and ahead is not None:
                if searched:
                    raise Missing(f"batch {self._consumed_batch + 1} is not on the log, and batch {ahead} is; './millrace repair' says what "
                                  "is lost and which ways out there are")
                searched = True  # it may lie before what was committed
                self._log.position(-1)
                continue
            if found is None:
                if timeout_s is not None and time.monotonic() - waited_since > timeout_s:
                    return
                time.sleep(_POLL_S)
                continue
            searched = False
            batch = self._take(*found)
            if batch.trained_tokens == 0:
                self._starve(batch)
            else:
                yield batch
                if self._taken is batch:
                    raise Refused(f"batch {batch.batch_id} was not published, and the next one is asked for; every batch makes a version, "
                                  "so call publish() after each")
            waited_since = time.monotonic()

    def _take(self, record: Record, offset: int) -> Batch:
        if record["assembled_version"] > self.version:
            raise Malformed(f"batch {record['batch_id']} was assembled against version {record['assembled_version']}, and the newest is "
                            f"{self.version}: versions were lost, or another trainer makes them")
        self._began_at_ms = int(time.time() * 1000)
        begun = time.monotonic()
        batch = self._log.joined(record, offset)
        self._taken_at = time.monotonic()
        self._taken, self._fetch_seconds = batch, self._taken_at - begun
        return batch

    def publish(self, weights: Weights, state: Optional[Mapping[str, Any]] = None, learning_rate: float = 0.0,
                metrics: Optional[Mapping[str, float]] = None, steps: int = 1) -> int:
        """Publishes the next version, made from the last batch.

        Validates everything before it writes. When it returns, version, training log and offset are committed.

        :param weights: a state dict (torch or NumPy), or the path of a safetensors file, with the tensors of the version before it. A run
            whose versions are bfloat16 gets them rounded to the nearest.
        :param state: what a trainer needs to resume, such as its optimizer's moments, as float tensors under your own names; :meth:`state`
            returns it. Millrace's learner resumes from ``exp_avg.<weight>`` and ``exp_avg_sq.<weight>``.
        :param learning_rate: of the step, for the training log
        :param metrics: for the training log, by name
        :param steps: optimizer steps of this version
        :return: the version
        :raises Refused: if the weights do not fit or are not finite; nothing was written, and it may be called again
        :raises TakenOver: if another trainer has replaced this one
        :raises NotCommitted: if the transaction was aborted; nothing of it is on the log
        :raises Uncertain: if it is unknown whether it is committed
        """
        if self._taken is None:
            raise Refused("there is no batch to make a version of; publish() comes once after each batch that batches() gives")
        batch: Batch = self._taken
        version = self.version + 1
        computed = time.monotonic()
        entries = self._newest["weights"]["tensors"]
        arrays = fitted(weights, entries, f"version {version}")
        kept = [(name, as_float32(name, value)) for name, value in (state or {}).items()]
        for name, array in kept:
            if not np.isfinite(array).all():
                raise Refused(f"the state {name} has values that are not finite; nothing was published")
        numbers = {"seconds_fetch": self._fetch_seconds, "seconds_step": computed - self._taken_at, "optimizer_steps": self.steps + steps}
        for name, value in {**(metrics or {}), "learning_rate": learning_rate}.items():
            if not math.isfinite(value):
                raise Refused(f"the metric {name} is {value}; leave out what could not be computed. Nothing was published")
            numbers[name] = float(value)
        del numbers["learning_rate"]
        now_ms = int(time.time() * 1000)
        rollouts = self._consumed_rollouts + len(batch)
        manifest = dict(
            self._identity.fields(), version=version, parent_version=self.version, batch_id=batch.batch_id, shape=self._newest["shape"],
            tokenizer_hash=self._newest["tokenizer_hash"], optimizer_steps=self.steps + steps, rollouts_consumed=rollouts,
            tokens_trained=self._newest["tokens_trained"] + batch.trained_tokens, published_at_ms=now_ms,
            controls=self._newest["controls"])
        if self._newest.get("adapter") is not None:
            manifest["adapter"] = self._newest["adapter"]
        named = [(entry["name"], entry["dtype"], array) for entry, array in zip(entries, arrays)]

        def write() -> Record:
            weight_place = self._send(version, "weights", named, self._deltas(named))
            state_place = self._send(version, "optimizer-state", [(n, "F32", a) for n, a in kept], {}) if kept else None
            self._transactions.flush()
            written = dict(manifest, weights=weight_place(), optimizer=state_place() if state_place else None)
            self._put("policy-versions", written, f"{self._identity.policy_id}/{self._identity.epoch}/{version}")
            step = self._step(batch, version, written["weights"]["sha256"], rollouts, learning_rate, numbers, False)
            self._put("training-log", step, self._identity.policy_id)
            return written

        self._newest = self._transactions.write(f"version {version}", write, lambda: self._offsets(batch))
        if self._anchor_every > 1:  # copies: the caller may change its arrays, and the next delta is against the published ones
            self._versions.published(self._newest, {name: array.copy() for name, _, array in named})
        self._versions.chain.by_version[version] = self._newest
        self._done(batch, rollouts)
        return version

    def _starve(self, batch: Batch) -> None:
        rollouts = self._consumed_rollouts + len(batch)
        step = self._step(batch, self.version, self._newest["weights"]["sha256"], rollouts, 0.0, {"seconds_fetch": self._fetch_seconds}, True)
        self._transactions.write(f"the step on batch {batch.batch_id}", lambda: self._put("training-log", step, self._identity.policy_id),
                                 lambda: self._offsets(batch))
        LOG.info("batch %d was starved: no token was left to train on", batch.batch_id)
        self._done(batch, rollouts)

    def _done(self, batch: Batch, rollouts: int) -> None:
        self._consumed_batch, self._consumed_rollouts, self._taken = batch.batch_id, rollouts, None

    def _offsets(self, batch: Batch) -> Tuple[Offsets, Any]:
        return [(*self._log.partition(), batch.offset + 1)], self._log.consumer.consumer_group_metadata()

    def _put(self, name: str, record: Record, key: str) -> None:
        topic = self._identity.topic(name)
        self._transactions.send(topic, self._schemas.encode(topic, record), key, self._partitions[name])

    def _deltas(self, named: List[Tuple[str, str, NDArray[Any]]]) -> Dict[str, bytes]:
        """Deltas against the newest version, by tensor; empty if the next version is whole."""
        location = self._newest["weights"]
        anchor = self.version if location["anchor_version"] is None else location["anchor_version"]
        if self.version + 1 - anchor >= self._anchor_every:
            return {}
        base = self._versions.raw(self.version)
        deltas = {name: make_delta(base[name], array) for name, _, array in named}
        return {name: deltas[name] for name, _, array in named if 0 < len(deltas[name]) < array.nbytes}

    def _send(self, version: int, name: str, tensors: List[Tuple[str, str, NDArray[Any]]], deltas: Mapping[str, bytes]) -> Any:
        """Sends the chunks; gives a function that after a flush gives the manifest's location of them."""
        topic, partition = self._identity.topic(name), self._partitions[name]
        offsets: List[int] = []
        entries, whole = [], hashlib.sha256()
        for tensor, dtype, array in tensors:
            data = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data if array.size else memoryview(b"")
            sent = memoryview(deltas[tensor]) if tensor in deltas else data
            pieces = range(0, len(sent), _CHUNK_BYTES)
            for chunk, start in enumerate(pieces):
                record = dict(self._identity.fields(), version=version, tensor=tensor, chunk=chunk, start=start,
                              data=sent[start:start + _CHUNK_BYTES])
                key = f"{self._identity.policy_id}/{self._identity.epoch}/{version}/{tensor}/{chunk}"
                self._transactions.send(topic, self._schemas.encode(topic, record), key, partition, offsets.append)
            whole.update(data)
            entries.append(dict(name=tensor, dtype=dtype, dims=list(array.shape), bytes=len(data), chunks=len(pieces),
                                sha256=hashlib.sha256(data).hexdigest(), encoding="DELTA" if tensor in deltas else "RAW",
                                encoded_bytes=len(sent) if tensor in deltas else None))
        base = self._newest["weights"] if deltas else None

        def location() -> Record:
            return dict(topic=topic, partition=partition, first_offset=min(offsets), last_offset=max(offsets), tensors=entries,
                        sha256=whole.hexdigest(), base_version=None if base is None else self.version,
                        base_sha256=None if base is None else base["sha256"],
                        anchor_version=None if base is None else self.version if base["anchor_version"] is None else base["anchor_version"])

        return location

    def _step(self, batch: Batch, version: int, sha256: str, rollouts: int, learning_rate: float, metrics: Dict[str, float],
              starved: bool) -> Record:
        stale = batch.staleness(self.version)
        queued = self.version - np.repeat(batch.proximal_versions, np.diff(batch.response_offsets))[batch.mask != 0]
        of_rollout = np.add.reduceat(np.append(batch.mask, 0), batch.response_offsets[:-1], dtype=np.int64) if len(batch) else np.zeros(0)
        of_rollout = np.where(np.diff(batch.response_offsets) > 0, of_rollout, 0)
        trained = int((of_rollout > 0).sum())
        mean = None if starved else float(stale.mean())
        queue = None if starved else float(queued.mean())
        return dict(
            self._identity.fields(), batch_id=batch.batch_id, version=version, weights_sha256=sha256, rollouts_trained=trained,
            rollouts_masked=len(batch) - trained, tokens_trained=batch.trained_tokens,
            reward_mean=float(batch.rewards.mean()) if len(batch) else 0.0, staleness_mean=mean,
            staleness_max=None if starved else int(stale.max()),
            staleness_in_flight_mean=None if mean is None or queue is None else mean - queue, staleness_in_queue_mean=queue,
            ess_ratio=batch.record["ess_ratio"], ess_ratio_truncated=batch.record.get("ess_ratio_truncated"),
            second_moment=batch.record.get("second_moment"), learning_rate=learning_rate, metrics=metrics,
            started_at_ms=self._began_at_ms, finished_at_ms=int(time.time() * 1000), tokens_trainable=batch.trainable_tokens,
            starved=starved, rollouts_consumed=rollouts)

    def _consumed(self) -> Tuple[int, int]:
        """The last batch that was consumed, and the rollouts in all up to it: the newest version's, and those starved behind it."""
        batch, rollouts = int(self._newest["batch_id"]), int(self._newest["rollouts_consumed"])
        at = self._identity.topic("training-log"), self._partitions["training-log"]
        records, consumer = Records(self._schemas), self._kafka.consumer()
        starved: Dict[int, int] = {}
        try:
            low, high = self._kafka.ends(consumer, *at)
            for messages in self._kafka.read(consumer, {at: (max(low, self._identity.beginning(*at)), high)}):
                for message in messages:
                    step = records.decode(message)
                    if step is not None and self._identity.owns(step) and step.get("starved") and step["version"] == self.version:
                        starved[step["batch_id"]] = step["rollouts_consumed"]
        finally:
            consumer.close()
        while batch + 1 in starved:
            batch += 1
            rollouts = starved[batch]
        return batch, rollouts

    def close(self) -> None:
        """Discards unpublished work. The next trainer resumes from the newest version."""
        self._transactions.close()
        self._log.close()

    def __enter__(self) -> "Trainer":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()
