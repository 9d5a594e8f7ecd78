"""A run, on a cluster or in files."""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from millrace_rl.avro import Record
from millrace_rl.batch import Batch
from millrace_rl.batch_log import BatchLog
from millrace_rl.errors import Missing, NoSuchRun, NotCommitted, Refused, Unreachable
from millrace_rl.generator import Generator, completed
from millrace_rl.kafka import KafkaException
from millrace_rl.log import Kafka, Records, Schemas, partition_of
from millrace_rl.recorded import PathLike, RecordedRun
from millrace_rl.settings import Client, ClientSettings
from millrace_rl.table import Table
from millrace_rl.tensors import Arrays
from millrace_rl.trainer import Trainer
from millrace_rl.versions import Identity, Versions, shape_of

_TOPICS = ("prompts", "rollouts", "scores", "rewards", "reference-scores", "teacher-scores", "trajectories", "batches", "policy-versions",
           "training-log", "serving", "outcomes")


class Run:
    """A run on a cluster, by its id. :meth:`open` reads one without a cluster.

    >>> run = Run("kafka:9092", "my-run")
    >>> for batch in run.batches():
    ...     print(batch.batch_id, batch.rewards.mean())

    A live run of `millrace train` has its own broker:

    >>> run = Run(Path("runs/my-run/broker.address").read_text().strip())

    :param bootstrap: bootstrap servers, ``host:port``, separated by commas; may be empty if `client` has them
    :param run: the run's id, `run.id` of its configuration; optional if the cluster has one run
    :param client: settings of Kafka's clients: the path of a properties file, or a mapping of librdkafka's names or Java's
    :param registry: address of a schema registry; without one, schemas are read from the cluster's topic ``_schemas``
    :param prefix: of the run's topics, if it is neither ``millrace.<run>.`` nor ``millrace.``
    :param timeout_s: longest wait for an answer or an expected record
    :param wait_s: how long to wait for a run that is being created
    :raises Unreachable: if no broker answers or the login is refused
    :raises NoSuchRun: if there is no such run

    Not thread-safe.
    """

    def __init__(self, bootstrap: str, run: Optional[str] = None, *, client: Client = None, registry: Optional[str] = None, prefix: Optional[str] = None,
                 timeout_s: float = 30.0, wait_s: float = 0.0):
        self._kafka = Kafka(ClientSettings(bootstrap, client), timeout_s)
        self._schemas = Schemas(self._kafka, registry)
        until = time.monotonic() + wait_s
        while True:
            over = time.monotonic() >= until
            self._partitions = self._kafka.topics()
            try:
                self._claim, self._identity = self._found(run, prefix)
                if over or self._identity.topic("policy-versions") in self._partitions:  # a run is claimed before its other topics are created
                    break
            except NoSuchRun:
                if over:
                    raise
            time.sleep(0.5)
        self._versions: Optional[Versions] = None
        self._producer: Any = None

    @staticmethod
    def open(path: PathLike, millrace: Optional[PathLike] = None) -> RecordedRun:
        """Reads a run without a cluster: rollouts, tokens and steps as tables.

        >>> run = Run.open("runs/my-run")
        >>> run.rollouts()["reward"].mean()

        A live run is read up to now, from its own broker; open it again to read later records.

        :param path: a run's folder, an archive of `millrace export`, or the tables of `millrace export --parquet`
        :param millrace: the launcher; by default ``MILLRACE``, that of the checkout around this folder or the package, or the one on the
            path. Tables need none
        :raises NoSuchRun: if the folder holds none of them
        :raises MillraceError: if it cannot be read
        """
        return RecordedRun(path, millrace)

    def _found(self, run: Optional[str], prefix: Optional[str]) -> Tuple[Record, Identity]:
        there = sorted(name[:-len("run")] for name in self._partitions if name.endswith(".run"))
        prefixes = [prefix] if prefix is not None else there if run is None else [f"millrace.{run}.", "millrace."]
        known: Dict[str, Record] = {}
        for candidate in prefixes:
            claim = self._claimed(candidate) if candidate + "run" in self._partitions else None
            if claim is not None:
                known[candidate] = claim
                if claim["run_id"] == run:
                    known = {candidate: claim}
                    break
        found = [(candidate, claim) for candidate, claim in known.items() if run in (None, claim["run_id"])]
        if len(found) == 1:
            candidate, claim = found[0]
            return claim, Identity(candidate, claim["run_id"], claim["epoch"], claim["policy_id"], claim.get("parent"), claim.get("began_at") or {})
        of = self._kafka.settings.bootstrap
        if found:
            raise NoSuchRun(f"several runs are on {of}: {', '.join(claim['run_id'] for _, claim in found)}; give the id of one")
        if prefix is not None and known:
            raise NoSuchRun(f"the topics under {prefix} belong to run {known[prefix]['run_id']}, not to {run}")
        others = [f"{candidate} ({known[candidate]['run_id']})" if candidate in known else candidate for candidate in there]
        raise NoSuchRun(f"there is no run{f' {run}' if run else ''} on {of} under the prefix {' or '.join(prefixes) or 'millrace.'}; "
                        + (f"topics of runs are there under {', '.join(others)}: correct the id, or give prefix" if others else
                           "no run is there that we may see: create it first, './millrace learn --first-version'"))

    def _claimed(self, prefix: str) -> Optional[Record]:
        """The current claim; ignores older runs under the prefix."""
        topic, records, valid = prefix + "run", Records(self._schemas), None
        for message in self._messages(topic):
            key = (message.key() or b"").decode("utf-8", "replace")
            claim = records.decode(message) if key == "run" or key.startswith("epoch/") else None
            if claim is not None and (valid is None or claim["run_id"] == valid["run_id"] and claim["epoch"] >= valid["epoch"]):
                valid = claim
        return valid

    def _messages(self, topic: str, newest: Optional[int] = None) -> Iterator[Any]:
        consumer = self._kafka.consumer()
        try:
            ranges = {}
            for partition in range(self._partitions[topic]):
                low, high = self._kafka.ends(consumer, topic, partition)
                ranges[topic, partition] = (low if newest is None else max(low, high - newest), high)
            for messages in self._kafka.read(consumer, ranges):
                yield from messages
        finally:
            consumer.close()

    @property
    def id(self) -> str:
        return self._identity.run_id

    @property
    def epoch(self) -> int:
        """Epoch of the run when this was created; a rollback begins another."""
        return self._identity.epoch

    @property
    def policy(self) -> str:
        """Name of the policy."""
        return self._identity.policy_id

    @property
    def prefix(self) -> str:
        """Of its topics."""
        return self._identity.prefix

    @property
    def configuration(self) -> Optional[str]:
        """The run's configuration as YAML; None if not recorded."""
        found: Optional[str] = self._claim.get("configuration")
        return found

    def _partition(self, name: str) -> int:
        topic = self._identity.topic(name)
        if topic not in self._partitions:
            raise Missing(f"run {self.id} has no topic {topic} that we may see")
        return partition_of(self.policy, self._partitions[topic])

    def _followed(self) -> Versions:
        if self._versions is None:
            self._versions = Versions(self._kafka, self._schemas, self._identity, self._partition("policy-versions"))
        self._versions.follow()
        return self._versions

    @property
    def version(self) -> int:
        """The newest version of the policy by now; waits for the first.

        :raises Missing: if there is none in time
        """
        deadline = time.monotonic() + self._kafka.timeout_s
        while True:
            newest = self._followed().chain.newest
            if newest is not None:
                return int(newest["version"])
            if time.monotonic() > deadline:
                raise Missing(f"run {self.id} has had no version for {self._kafka.timeout_s:g} s; './millrace learn --first-version' "
                              "publishes the initial weights")
            time.sleep(0.1)

    @property
    def shape(self) -> Dict[str, Any]:
        """The decoder's shape, under the names of Hugging Face's config.json."""
        return shape_of(self.manifest())

    def manifest(self, version: Optional[int] = None) -> Record:
        """The manifest of a version; None is the newest."""
        wanted = self.version if version is None else version
        return self._followed().manifest(wanted)

    def weights(self, version: Optional[int] = None) -> Arrays:
        """The weights of a version as float32 by their safetensors names, verified; None is the newest. They are read-only."""
        wanted = self.version if version is None else version
        return self._followed().weights(wanted)

    def batches(self, first: int = 0, follow: bool = False) -> Iterator[Batch]:
        """Yields batches in order, each once, with their trajectories. Read-only.

        :param first: id of the first batch
        :param follow: whether to wait for further ones at the end

        To train on them use :meth:`trainer`.
        """
        log = BatchLog(self._kafka, self._schemas, self._identity, self._partition("batches"))
        last = first - 1
        try:
            while True:
                for record, offset in log.available():
                    if record["batch_id"] > last:
                        last = record["batch_id"]
                        yield log.joined(record, offset)
                if not follow:
                    return
                time.sleep(0.1)
        finally:
            log.close()

    def records(self, topic: str, newest: Optional[int] = None, fields: Optional[Sequence[str]] = None) -> Iterator[Record]:
        """Yields the records of this run and epoch on a topic as dicts, with vectors as read-only arrays, up to the current end.

        :param topic: without the prefix, such as ``rollouts``
        :param newest: only the last ones of each partition, this many
        :param fields: reads only these, which is faster; ``run_id`` and ``epoch`` are always there
        """
        name = self._identity.topic(topic)
        if topic not in _TOPICS:
            raise Refused(f"{topic} is no topic of records; these are {', '.join(_TOPICS)}")
        if name not in self._partitions:
            raise Missing(f"run {self.id} has no topic {name} that we may see; it has one where its topology joins such records")
        wanted = None if fields is None else tuple(dict.fromkeys(("run_id", "epoch", *fields)))
        records = Records(self._schemas, wanted)
        for message in self._messages(name, newest):
            record = records.decode(message)
            if record is not None and record["run_id"] == self.id and record["epoch"] == self.epoch:
                yield {**record, "partition": message.partition(), "offset": message.offset(), "timestamp_ms": message.timestamp()[1]}

    def table(self, topic: str, newest: Optional[int] = None, fields: Optional[Sequence[str]] = None) -> Table:
        """As :meth:`records`, as columns."""
        return Table(list(self.records(topic, newest, fields)))

    def rollouts(self, newest: Optional[int] = None, fields: Optional[Sequence[str]] = None) -> Table:
        """Rollouts."""
        return self.table("rollouts", newest, fields)

    def scores(self, newest: Optional[int] = None, fields: Optional[Sequence[str]] = None) -> Table:
        """Log-probs of the learner's engine."""
        return self.table("scores", newest, fields)

    def outcomes(self, newest: Optional[int] = None, fields: Optional[Sequence[str]] = None) -> Table:
        """Rollouts that left without reaching a batch, and why."""
        return self.table("outcomes", newest, fields)

    def steps(self, newest: Optional[int] = None, fields: Optional[Sequence[str]] = None) -> Table:
        """The training log."""
        return self.table("training-log", newest, fields)

    def submit(self, rollout: Mapping[str, Any]) -> str:
        """Writes one rollout, and returns its id when all replicas have it.

        Derived fields may be left out: ids of run and rollout, a mask of ones, one turn of the policy's, times. A repetition of the same
        `rollout_id` is dropped by the topology, so a retry is safe. To answer the run's prompts use :meth:`generator`.

        :raises Refused: naming the invalid field; nothing was written
        """
        record = completed(rollout, self._identity, int(self.shape["vocab_size"]), int(time.time() * 1000))
        topic = self._identity.topic("rollouts")
        value = self._schemas.encode(topic, record)
        if self._producer is None:
            self._producer = self._kafka.producer()
        failed: List[Any] = []

        def delivered(error: Any, message: Any) -> None:
            if error is not None:
                failed.append(error)

        self._producer.produce(topic, value=value, key=record["group_id"], on_delivery=delivered)
        try:
            left = self._producer.flush(self._kafka.timeout_s)
        except KafkaException as e:
            raise Unreachable(f"rollout {record['rollout_id']} was not written: {e.args[0].str()}") from None
        if failed or left:
            why = failed[0].str() if failed else f"it was not acknowledged within {self._kafka.timeout_s:g} s"
            raise NotCommitted(f"rollout {record['rollout_id']} was not written: {why}; submit it again")
        return str(record["rollout_id"])

    def trainer(self, anchor_every: int = 1, transaction_timeout_s: float = 120.0) -> Trainer:
        """Replaces the learner and fences every other trainer of the run.

        :param anchor_every: writes every n-th version whole and those between as deltas; 1 writes every version whole
        :param transaction_timeout_s: the broker aborts a longer transaction of a step; at most its transaction.max.timeout.ms
        """
        self.version  # waits: the publisher of the initial weights must not be fenced
        return Trainer(self._kafka, self._schemas, self._identity, self._partitions, anchor_every, transaction_timeout_s)

    def generator(self, generator_id: str, on_version: Optional[Callable[[int, Arrays], Any]] = None) -> Generator:
        """Samples the run's prompts, alone or together with other generators.

        :param generator_id: unique among the generators of the run
        :param on_version: called with each new version and its weights before prompts are handed out
        """
        return Generator(self._kafka, self._schemas, self._identity, generator_id, self._partition("policy-versions"), on_version)

    def __repr__(self) -> str:
        return f"Run {self.id}, epoch {self.epoch}, on {self._kafka.settings.bootstrap} under {self.prefix}"
