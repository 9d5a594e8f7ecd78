"""The log of a run: topics, schemas, bounded reads."""

from __future__ import annotations

import base64
import json
import logging
import time
import urllib.error
import urllib.parse
import urllib.request
from operator import methodcaller
from typing import Any, Callable, Collection, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from millrace_rl.avro import Reader, Record, Schema, compiled_reader
from millrace_rl.avro_writer import PartialWriter, compiled_writer
from millrace_rl.columns import ColumnReader
from millrace_rl.errors import Malformed, MillraceError, Missing, Refused, Unreachable
from millrace_rl.kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from millrace_rl.settings import ClientSettings, followed
from millrace_rl.walker import NotCompiled, Walker, places_of

LOG = logging.getLogger("millrace")
_SCHEMAS = "_schemas"
_AT_ONCE = 1000
_ERROR = methodcaller("error")


class Kafka:
    """Kafka clients with readable error messages."""

    def __init__(self, settings: ClientSettings, timeout_s: float):
        self.settings = settings
        self.timeout_s = timeout_s
        self._last_error = ""

    def _made(self, make: Callable[[Dict[str, Any]], Any], kind: str, own: Mapping[str, Any]) -> Any:
        settings = self.settings.of(kind, {"error_cb": self._failed, "log_level": 0, **own})
        try:
            return make(settings)
        except KafkaException as e:
            raise Refused(f"the client's settings are refused: {e.args[0].str()}") from None
        except (TypeError, ValueError) as e:
            raise Refused(f"the client's settings are refused: {e}") from None

    def _failed(self, error: KafkaError) -> None:
        self._last_error = error.str()
        LOG.debug("a client reports: %s", error.str())

    def consumer(self, **own: Any) -> Consumer:
        """A consumer without auto-commit that reads committed records and reports ends of partitions."""
        return self._made(Consumer, "consumer.", {
            "group.id": "unused", "isolation.level": "read_committed", "enable.auto.commit": False, "auto.offset.reset": "error",
            "enable.partition.eof": True, "fetch.wait.max.ms": 50, "fetch.message.max.bytes": 8 << 20,
            # prefetch is bounded by bytes: at the bound of messages the client would pause for a second
            "queued.min.messages": 1_000_000, **own})

    def producer(self, **own: Any) -> Producer:
        """A producer with acks=all and the Java clients' partitioner."""
        return self._made(Producer, "producer.", {
            "enable.idempotence": True, "acks": "all", "partitioner": "murmur2_random", "message.max.bytes": 1 << 20,
            "linger.ms": 2, **own})

    def away(self, what: str, error: Optional[KafkaException] = None, client: Any = None) -> Unreachable:
        """Message for a failed broker operation.

        :param client: which may know the cause
        """
        try:
            if client is not None:
                client.poll(0)
        except KafkaException as e:
            LOG.debug("a client has ended: %s", e)
        said = error.args[0].str() if error is not None else ""
        told = self._last_error if self._last_error and self._last_error not in said else ""
        why = "; ".join(part for part in (said, told) if part) or f"no answer for {self.timeout_s:g} s"
        return Unreachable(f"{what} at {self.settings.bootstrap} failed: {why}; correct the address, the client's settings or its rights, or see "
                           "whether the brokers run")

    def topics(self) -> Dict[str, int]:
        """All visible topics with their partition counts."""
        consumer = self.consumer()
        try:
            found = consumer.list_topics(timeout=self.timeout_s).topics
            return {name: len(topic.partitions) for name, topic in found.items()}
        except KafkaException as e:
            raise self.away("asking for the topics", e, consumer) from None
        finally:
            consumer.close()

    def look_up(self, client: Any, topic: str) -> None:
        """Makes a client fetch a topic's leaders now, instead of once a second."""
        try:
            client.list_topics(topic, timeout=self.timeout_s)
        except KafkaException as e:
            raise self.away(f"asking for the topic {topic}", e, client) from None

    def ends(self, consumer: Consumer, topic: str, partition: int) -> Tuple[int, int]:
        """First offset of a partition, and its last stable offset."""
        try:
            low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), self.timeout_s)
            return int(low), int(high)
        except (KafkaException, TypeError) as e:
            raise self.away(f"asking for the end of {topic}-{partition}", e if isinstance(e, KafkaException) else None, consumer) from None

    def read(self, consumer: Consumer, ranges: Mapping[Tuple[str, int], Tuple[int, int]]) -> Iterator[List[Any]]:
        """Yields messages of partitions from an offset to an exclusive end, many at a time.

        Fails after `timeout_s` without progress.
        """
        left = {at: end for at, (start, end) in ranges.items() if start < end}
        if not left:
            return
        consumer.assign([TopicPartition(at[0], at[1], ranges[at][0]) for at in left])
        deadline = time.monotonic() + self.timeout_s
        while left:
            found = []
            first = consumer.poll(0.2)  # consume() alone would wait for the full number
            for message in [] if first is None else [first, *consumer.consume(_AT_ONCE, 0)]:
                at = message.topic(), message.partition()
                error = message.error()
                if error is not None and error.code() != KafkaError._PARTITION_EOF:
                    refuse(at, error)
                if at not in left:
                    continue
                offset = message.offset()
                if error is None and offset < left[at]:
                    found.append(message)
                # the last offsets may be transaction markers, which are not messages: then the end of the partition is reported
                if offset + (error is None) >= left[at]:
                    del left[at]
            if found:
                deadline = time.monotonic() + self.timeout_s
                yield found
            elif left and time.monotonic() > deadline:
                at, end = next(iter(left.items()))
                raise self.away(f"reading {at[0]}-{at[1]} up to offset {end}")
        consumer.unassign()


class Forward:
    """Reads a topic forwards in consecutive pieces, reusing prefetched messages."""

    def __init__(self, kafka: Kafka, topic: str):
        self._kafka = kafka
        self._topic = topic
        self._consumers: Dict[int, Consumer] = {}
        self._next: Dict[int, int] = {}

    def read(self, partition: int, first: int, last: int, at_once: int = _AT_ONCE) -> Iterator[List[Any]]:
        """Yields messages of a partition from `first` to `last`, or further ones already fetched.

        If the position is shortly before `first`, the messages in between are included.

        :param at_once: most messages in a list, and in all of them if `last` is among these
        """
        consumer = self._consumers.get(partition)
        if consumer is None:
            consumer = self._consumers[partition] = self._kafka.consumer()
            self._kafka.look_up(consumer, self._topic)
        at = self._next.get(partition, -1)
        if at < 0 or at > first or first - at > 10_000:
            consumer.assign([TopicPartition(self._topic, partition, first)])
            self._next[partition] = first
        deadline, left = time.monotonic() + self._kafka.timeout_s, at_once
        while self._next[partition] <= last:
            message = consumer.poll(0.2)
            found = [] if message is None else [message, *consumer.consume(left - 1, 0)]
            left = left - len(found) or at_once
            if any(map(_ERROR, found)):
                found = self._without_errors(partition, found)
            elif found:
                self._next[partition] = found[-1].offset() + 1
            if found:
                deadline = time.monotonic() + self._kafka.timeout_s
                yield found
            elif self._next[partition] <= last and time.monotonic() > deadline:
                raise self._kafka.away(f"reading {self._topic}-{partition} up to offset {last}")

    def _without_errors(self, partition: int, messages: List[Any]) -> List[Any]:
        found = []
        for each in messages:
            error = each.error()
            if error is None:
                found.append(each)
                self._next[partition] = each.offset() + 1
            elif error.code() == KafkaError._PARTITION_EOF:
                self._next[partition] = max(self._next[partition], each.offset())
            else:
                self._pass((self._topic, partition), error)
        return found

    def _pass(self, at: Tuple[str, int], error: KafkaError) -> None:
        try:
            refuse(at, error)
        except MillraceError:
            del self._next[at[1]]  # the next call seeks again
            raise

    def close(self) -> None:
        for consumer in self._consumers.values():
            consumer.close()


def refuse(at: Tuple[str, int], error: KafkaError) -> None:
    """Ignores recoverable errors, and group errors, since this reader has no group."""
    if error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
        return
    if error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
        raise Missing(f"{at[0]}-{at[1]} no longer has the requested records: retention has removed it, or the log was cut off "
                      f"({error.str()})")
    if error.fatal() or not error.retriable():
        raise Unreachable(f"{at[0]}-{at[1]} cannot be read: {error.str()}")
    LOG.debug("%s-%s: %s", at[0], at[1], error.str())


class Schemas:
    """Schemas by id and by subject, from a registry with Confluent's API or from the topic `_schemas`."""

    def __init__(self, kafka: Kafka, registry: Optional[str]):
        self._kafka = kafka
        self._registry = followed("registry", registry).rstrip("/") if registry else ""
        self._shown = registry
        self._texts: Dict[int, str] = {}
        self._newest: Dict[str, Tuple[int, int]] = {}
        self._readers: Dict[Tuple[int, Optional[Tuple[str, ...]], Tuple[str, ...], Tuple[str, ...]], Reader] = {}
        self._columns: Dict[Tuple[int, str], Union[Walker, ColumnReader]] = {}
        self._writers: Dict[str, Tuple[int, Callable[[Mapping[str, Any]], bytes]]] = {}

    def reader(self, schema_id: int, fields: Optional[Collection[str]] = None, skipped: Collection[str] = (),
               placed: Collection[str] = ()) -> Reader:
        """Of records of a schema, as compiled_reader makes it."""
        key = schema_id, None if fields is None else tuple(fields), tuple(skipped), tuple(placed)
        if key not in self._readers:
            self._readers[key] = compiled_reader(Schema(self._text(schema_id)), fields, skipped, placed, places_of)
        return self._readers[key]

    def columns(self, schema_id: int, record: str, wanted: Sequence[str]) -> Union[Walker, ColumnReader]:
        """Of records of a schema, or of a type that it names, side by side.

        :param wanted: the same at every call for this record
        """
        if (schema_id, record) not in self._columns:
            schema = Schema(self._text(schema_id))
            if record not in schema.named:
                raise Malformed(f"the schema {schema_id}, {schema.name}, has no {record}")
            node = schema.named[record]
            try:
                self._columns[schema_id, record] = Walker(schema, node, wanted)
            except NotCompiled:
                self._columns[schema_id, record] = ColumnReader(schema, node, wanted)
        return self._columns[schema_id, record]

    def encode(self, topic: str, record: Mapping[str, Any]) -> bytes:
        """A record in Confluent's wire format, of the newest schema of the topic."""
        if topic not in self._writers:
            schema_id, text = self._latest(topic + "-value")
            self._writers[topic] = schema_id, compiled_writer(Schema(text))
        schema_id, write = self._writers[topic]
        return b"\0" + schema_id.to_bytes(4, "big") + write(record)

    def writer(self, topic: str, fixed: Mapping[str, Any], varying: Collection[str], record: Optional[str] = None) -> PartialWriter:
        """Of records of a topic as :meth:`encode` makes them, or of a record within them."""
        schema_id, text = self._latest(topic + "-value")
        head = b"" if record is not None else b"\0" + schema_id.to_bytes(4, "big")
        return PartialWriter(Schema(text), fixed, varying, record, head)

    def _text(self, schema_id: int) -> str:
        if schema_id not in self._texts:
            if self._registry:
                self._texts[schema_id] = self._asked(f"/schemas/ids/{schema_id}")["schema"]
            else:
                self._read()
        if schema_id not in self._texts:
            raise Malformed(f"there is no schema with the id {schema_id}{self._where()}")
        return self._texts[schema_id]

    def _latest(self, subject: str) -> Tuple[int, str]:
        if self._registry:
            found = self._asked(f"/subjects/{urllib.parse.quote(subject, safe='')}/versions/latest")
            return int(found["id"]), found["schema"]
        if subject not in self._newest:
            self._read()
        if subject not in self._newest:
            raise Missing(f"there is no schema {subject}{self._where()}; the run's topology may not have this topic")
        schema_id = self._newest[subject][1]
        return schema_id, self._texts[schema_id]

    def _where(self) -> str:
        return f" at {self._shown}" if self._registry else f" on {_SCHEMAS}; where a registry keeps them, give its address as registry"

    def _read(self) -> None:
        """Reads the whole topic in the format of Confluent's registry."""
        if _SCHEMAS not in self._kafka.topics():
            raise Missing(f"the cluster has no topic {_SCHEMAS} that we may read, and no registry was named; give its address as registry")
        consumer = self._kafka.consumer()
        try:
            low, high = self._kafka.ends(consumer, _SCHEMAS, 0)
            for messages in self._kafka.read(consumer, {(_SCHEMAS, 0): (low, high)}):
                for message in messages:
                    self._take(message.key(), message.value())
        finally:
            consumer.close()

    def _take(self, key: Optional[bytes], value: Optional[bytes]) -> None:
        try:
            about = json.loads(key or b"{}")
            body = json.loads(value) if value else {}
            if about.get("keytype") == "SCHEMA" and "schema" in body and body.get("schemaType", "AVRO") == "AVRO":
                self._texts[body["id"]] = body["schema"]  # also of a deleted one: records that it wrote stay readable
                subject, version = about["subject"], about["version"]
                if not body.get("deleted") and self._newest.get(subject, (0, 0))[0] < version:
                    self._newest[subject] = version, body["id"]
        except (ValueError, KeyError, TypeError) as e:
            LOG.warning("passed over a record of %s that says nothing about a schema: %s", _SCHEMAS, e)

    def _asked(self, path: str) -> Any:
        parts = urllib.parse.urlsplit(self._registry)
        request = urllib.request.Request(f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}{path}")
        if parts.username is not None:
            login = f"{urllib.parse.unquote(parts.username)}:{urllib.parse.unquote(parts.password or '')}"
            request.add_header("Authorization", "Basic " + base64.b64encode(login.encode()).decode())
        try:
            with urllib.request.urlopen(request, timeout=self._kafka.timeout_s) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as e:
            if e.code == 404:
                raise Missing(f"the registry at {self._shown} has nothing under {path}") from None
            raise Unreachable(f"the registry at {self._shown} answers {e.code} to {path}; see its log, or correct the address") from None
        except (OSError, ValueError) as e:
            raise Unreachable(f"the registry at {self._shown} does not answer {path}: {e}; correct the address") from None


class Records:
    """Decodes records of a topic; skips and logs invalid ones."""

    def __init__(self, schemas: Schemas, fields: Optional[Sequence[str]] = None, arrays: bool = True, skipped: Sequence[str] = (),
                 placed: Sequence[str] = ()):
        self._schemas = schemas
        self._fields = None if fields is None else tuple(fields)
        self._arrays = arrays
        self._skipped = skipped
        self._placed = placed
        self._readers: Dict[bytes, Reader] = {}
        self.passed_over = 0

    def decode(self, message: Any) -> Optional[Record]:
        """None for a record without a value, and for an undecodable one."""
        value = message.value()
        if value is None:
            return None
        try:
            return self.of(value)
        except Malformed as e:
            self.passed_over += 1
            if self.passed_over & (self.passed_over - 1) == 0:
                LOG.warning("passed over %d records that cannot be read, the last %s-%d@%d: %s", self.passed_over, message.topic(),
                            message.partition(), message.offset(), e)
            return None

    def of(self, value: bytes) -> Record:
        """:raises Malformed: if it is not a record"""
        read = self._readers.get(value[:5])
        if read is None:
            if len(value) < 5 or value[0] != 0:
                raise Malformed(f"these {len(value)} bytes do not begin with a 0 and a schema's id, as Confluent's wire format has it")
            read = self._schemas.reader(int.from_bytes(value[1:5], "big"), self._fields, self._skipped, self._placed)
            self._readers[value[:5]] = read
        return read(value, 5, self._arrays)


def murmur2(data: bytes) -> int:
    """Kafka's hash of a key, from which Java's clients derive the partition: ``(murmur2(key) & 0x7fffffff) % partitions``."""
    mask, m = 0xFFFFFFFF, 0x5BD1E995
    h = 0x9747B28C ^ len(data)
    for i in range(0, len(data) - 3, 4):
        k = int.from_bytes(data[i:i + 4], "little") * m & mask
        k = (k ^ k >> 24) * m & mask
        h = (h * m & mask) ^ k
    rest = data[len(data) & ~3:]
    if rest:
        h = (h ^ int.from_bytes(rest, "little")) * m & mask
    h = (h ^ h >> 13) * m & mask
    return h ^ h >> 15


def partition_of(key: str, partitions: int) -> int:
    """Partition of everything about one policy."""
    return (murmur2(key.encode()) & 0x7FFFFFFF) % partitions
