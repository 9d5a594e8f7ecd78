"""Transactions of a role with exclusive ownership."""

from __future__ import annotations

import os
import time
import uuid
from typing import Any, Callable, List, Optional, Set, Tuple

from millrace_rl.errors import NotCommitted, TakenOver, Uncertain
from millrace_rl.kafka import KafkaError, KafkaException, TopicPartition
from millrace_rl.log import LOG, Kafka

#: Longest time until a newer owner records itself after fencing the previous one.
_WRITTEN_DOWN_S = 5.0
#: Attempts to record an owner: a fenced predecessor may come back before the record is there, and fence in turn.
_CLAIMS = 5

#: Records between calls for their acknowledgements, which free their memory.
_BETWEEN_POLLS = 32

_FENCED = {KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.INVALID_TXN_STATE}

Offsets = List[Tuple[str, int, int]]


class Transactions:
    """A transactional producer that takes over an id.

    Taking over aborts an earlier owner's transaction and fences it. Ownership is recorded like in Millrace's own roles: as the offset of
    the topic `run` in the group `<id>.owner`, incremented by each owner. A Millrace role that finds a newer owner ends with a message, and
    does not take the id back.

    :param owned: whether the id has a record of its owner: the trainer's does
    """

    def __init__(self, kafka: Kafka, transactional_id: str, run_topic: str, what: str, owned: bool, timeout_s: float,
                 transaction_timeout_s: float):
        self._kafka = kafka
        self._what = what
        self._timeout_s = timeout_s
        self._failures: List[KafkaError] = []
        self._is_lost = False
        #: set after a fatal error
        self._failure: Optional[Exception] = None
        self._owner = (transactional_id + ".owner", run_topic) if owned else None
        self._term = 0
        self._known: Set[str] = set()
        self._sent = 0
        for attempt in range(1, _CLAIMS + 1):
            self.producer = kafka.producer(**{
                "transactional.id": transactional_id, "transaction.timeout.ms": int(transaction_timeout_s * 1000),
                "compression.type": "none", "queue.buffering.max.kbytes": 1 << 20})
            try:
                self.producer.init_transactions(timeout_s)
            except KafkaException as e:
                raise self._kafka.away(f"taking over the transactional id {transactional_id}", e, self.producer) from None
            if self._owner is None:
                return
            try:
                return self._claim(*self._owner)
            except TakenOver:
                if attempt == _CLAIMS:
                    raise
                LOG.info("%s was fenced while it took over; it tries again", what)

    def _claim(self, group: str, run_topic: str) -> None:
        member = self._kafka.consumer(**{"group.id": group})
        try:
            term, said = self._recorded(member, run_topic)
            claim = TopicPartition(run_topic, 0, term + 1)
            if hasattr(claim, "metadata"):  # of newer clients
                who = f"{term + 1} {uuid.uuid4()} (python process {os.getpid()}, since {time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())})"
                claim = TopicPartition(run_topic, 0, term + 1, who)
            self.producer.begin_transaction()
            self.producer.send_offsets_to_transaction([claim], member.consumer_group_metadata(), self._timeout_s)
            self._commit("taking over", time.monotonic() + self._timeout_s)
            self._term = term + 1
            LOG.info("%s is this process's, as owner %d%s", self._what, term + 1, f"; before it, {said}" if said else "")
        except KafkaException as e:
            raise self._sentence("taking over", e) from None
        finally:
            member.close()

    def _recorded(self, member: Any, run_topic: str) -> Tuple[int, str]:
        """Term of the owner, and its description."""
        recorded = member.committed([TopicPartition(run_topic, 0)], self._timeout_s)[0]
        said = getattr(recorded, "metadata", None) or ""
        first = said.split(" ")[0]
        return max(recorded.offset, int(first) if first.isdigit() else 0, 0), said

    def _is_taken_over(self) -> bool:
        """Whether a newer owner has recorded itself, which happens shortly after it fences the previous one.

        Otherwise the broker aborted an open transaction after its timeout.
        """
        if self._owner is None:
            return True
        member = self._kafka.consumer(**{"group.id": self._owner[0]})
        deadline = time.monotonic() + min(_WRITTEN_DOWN_S, self._timeout_s)
        try:
            while self._recorded(member, self._owner[1])[0] <= self._term:
                if time.monotonic() > deadline:
                    return False
                time.sleep(0.1)
            return True
        except KafkaException:
            return True  # unknown: to continue might duplicate records
        finally:
            member.close()

    def send(self, topic: str, value: Optional[bytes], key: str, partition: Optional[int] = None,
             written: Optional[Callable[[int], None]] = None) -> None:
        """Sends a record, within :meth:`write`."""
        def delivered(error: Optional[KafkaError], message: Any) -> None:
            if error is not None:
                self._failures.append(error)
            elif written is not None:
                written(message.offset())

        if topic not in self._known:
            self._kafka.look_up(self.producer, topic)
            self._known.add(topic)
        more = {} if partition is None else {"partition": partition}
        deadline = time.monotonic() + self._timeout_s
        while True:
            try:
                self.producer.produce(topic, value=value, key=key, on_delivery=delivered, **more)
                break
            except BufferError:  # the queue is full: wait
                if time.monotonic() > deadline:
                    raise NotCommitted(f"{self._what}: the broker took no record for {self._timeout_s:g} s") from None
                self.producer.poll(0.1)
        self._sent += 1
        if self._sent % _BETWEEN_POLLS == 0:
            self.producer.poll(0)

    def flush(self) -> None:
        """Waits until everything is acknowledged."""
        left = self.producer.flush(self._timeout_s)
        if self._failures:
            raise KafkaException(self._failures[0])
        if left:
            raise NotCommitted(f"{self._what}: {left} records were not acknowledged within {self._timeout_s:g} s")

    def write(self, what: str, work: Callable[[], Any], offsets: Callable[[], Tuple[Offsets, Any]]) -> Any:
        """Runs one transaction: the records that the work sends, and offsets of a group.

        :raises TakenOver: if another process has taken the id
        :raises NotCommitted: if it was aborted
        :raises Uncertain: if the outcome is unknown
        """
        if self._failure is not None:
            raise self._failure
        self._failures.clear()
        try:
            self.producer.begin_transaction()
            result = work()
            self.flush()
            done, group = offsets()
            if done:
                self.producer.send_offsets_to_transaction([TopicPartition(*at) for at in done], group, self._timeout_s)
            self._commit(what, time.monotonic() + self._timeout_s)
            return result
        except BaseException as e:
            is_fenced = isinstance(e, KafkaException) and self._is_fenced(e.args[0])
            self._is_lost = is_fenced or isinstance(e, Uncertain) or not self._aborted()
            failure = self._sentence(what, e) if isinstance(e, KafkaException) else e
            if self._is_lost:
                self._failure = failure if isinstance(failure, Exception) else NotCommitted(f"{self._what} was interrupted; make a new one")
            raise failure from None

    def _commit(self, what: str, deadline: float) -> None:
        while True:
            try:
                self.producer.commit_transaction(max(0.1, deadline - time.monotonic()))
                return
            except KafkaException as e:
                error = e.args[0]
                if error.retriable() and time.monotonic() < deadline:
                    continue
                if error.txn_requires_abort() or self._is_fenced(error):
                    raise
                raise Uncertain(f"the broker did not say whether {what} is committed ({error.str()}); it is wholly or not at all, and "
                                "the next start finds out") from None

    def _aborted(self) -> bool:
        try:
            self.producer.abort_transaction(self._timeout_s)
            return True
        except KafkaException as e:
            LOG.warning("%s: a transaction could not be aborted, which the next start does instead: %s", self._what, e.args[0].str())
            return False

    def _is_fenced(self, error: KafkaError) -> bool:
        return error.code() in _FENCED

    def _sentence(self, what: str, e: KafkaException) -> Exception:
        error = e.args[0]
        # once fenced, a client fails every further call as fatal, without the cause
        if (self._is_fenced(error) or error.code() == KafkaError._FATAL) and self._is_taken_over():
            return TakenOver(f"{self._what} is somebody else's by now: another process has taken it over, or the run has begun a new epoch; "
                             f"{what} was not written, and this process must stop")
        if self._is_fenced(error):
            return NotCommitted(f"{what} was not committed: the broker gave the transaction up after its time; make a new one, which continues "
                                "from what is committed, with a larger transaction_timeout_s")
        failure = NotCommitted(f"{what} was not committed: {error.str()}"
                               + ("; create a new one, which continues from the last commit" if self._is_lost else "; it may be tried again"))
        failure.code = error.code()
        return failure

    def close(self) -> None:
        """Aborts an open transaction."""
        self._failure = self._failure or NotCommitted(f"{self._what} is closed")
        try:
            self.producer.abort_transaction(self._timeout_s)
            self.producer.flush(0)
        except KafkaException as e:
            LOG.debug("%s had nothing to end: %s", self._what, e)
