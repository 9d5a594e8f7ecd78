package dev.millrace.gateway;

import dev.millrace.generator.sampling.AcceptedPrompt;
import dev.millrace.log.LogConnection;
import dev.millrace.log.scan.LogReader;
import dev.millrace.log.scan.ReadLimit;
import dev.millrace.schemas.LogCoordinates;
import dev.millrace.schemas.SessionEvent;
import dev.millrace.schemas.SessionEventKind;
import dev.millrace.schemas.SessionTurn;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.schemas.serde.MalformedRecordException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.serialization.Serializer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The topic {@code sessions}: records are replicated before acknowledgement, and read back by a successor. Partitioned
 * as the prompts. Thread-safe, except {@link #read}.
 */
final class SessionLog implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(SessionLog.class);
    private static final Duration CLOSE_LIMIT = Duration.ofSeconds(5);
    private static final int DELIVERY_TIMEOUT_MS = 30_000;
    /** Bound of clock differences between releasing and opening machines. */
    private static final long CLOCKS_DIFFER_MS = 3_600_000;

    private final LogConnection connection;
    private final String gatewayId;
    private final String topic;
    private final Serializer<SessionEvent> serializer;
    private final Deserializer<SessionEvent> deserializer;
    private final Producer<byte[], byte[]> producer;

    SessionLog(LogConnection connection, String gatewayId) {
        this.connection = connection;
        this.gatewayId = gatewayId;
        this.topic = connection.topics().sessions();
        AvroSerde<SessionEvent> serde = AvroSerde.of(SessionEvent.class, connection.registry());
        this.serializer = serde.serializer();
        this.deserializer = serde.deserializer();
        this.producer = new KafkaProducer<>(
                connection.producer(Map.of(
                        "client.id",
                        "gateway-" + gatewayId,
                        "acks",
                        "all",
                        "enable.idempotence",
                        true,
                        "linger.ms",
                        0,
                        "compression.type",
                        "lz4",
                        "max.block.ms",
                        DELIVERY_TIMEOUT_MS,
                        "delivery.timeout.ms",
                        DELIVERY_TIMEOUT_MS,
                        "request.timeout.ms",
                        DELIVERY_TIMEOUT_MS / 2)),
                new ByteArraySerializer(),
                new ByteArraySerializer());
    }

    CompletableFuture<Void> opened(Session session) {
        return takenUp(session, session.openedAtMs());
    }

    CompletableFuture<Void> takenUp(Session session, long nowMs) {
        return append(
                event(session, session.sample(), SessionEventKind.OPENED, nowMs).build());
    }

    CompletableFuture<Void> played(Session session, SessionTurn turn, long nowMs) {
        return append(event(session, session.sample(), SessionEventKind.TURN, nowMs)
                .setTurn(turn)
                .build());
    }

    /** End record, for the enclosing transaction. */
    ProducerRecord<byte[], byte[]> ended(SessionEnding ending, long nowMs) {
        SessionEventKind kind = ending.rollout() == null ? SessionEventKind.RETURNED : SessionEventKind.ENDED;
        return record(event(ending.session(), ending.session().sample(), kind, nowMs)
                .setTrainedTurn(ending.trainedTurn())
                .setFinishReason(ending.finishReason())
                .setError(ending.error())
                .build());
    }

    ProducerRecord<byte[], byte[]> ended(SessionEnding ending, SessionEnding.BranchEnding branch, long nowMs) {
        return record(event(ending.session(), branch.sample(), SessionEventKind.ENDED, nowMs)
                .setTrainedTurn(branch.lastTurn())
                .setFinishReason(branch.rollout().getFinishReason())
                .build());
    }

    private SessionEvent.Builder event(Session session, ReleasedSample sample, SessionEventKind kind, long nowMs) {
        AcceptedPrompt prompt = sample.prompt();
        return SessionEvent.newBuilder()
                .setRunId(connection.run().runId())
                .setEpoch(connection.run().epoch())
                .setSessionId(session.id().text())
                .setGroupId(prompt.request().getGroupId())
                .setSampleIndex(sample.index())
                .setGatewayId(gatewayId)
                .setAgent(session.agent())
                .setPromptSource(new LogCoordinates(
                        prompt.partition().topic(), prompt.partition().partition(), prompt.offset()))
                .setKind(kind)
                .setAtMs(nowMs)
                .setTurn(null)
                .setTrainedTurn(-1)
                .setFinishReason(null)
                .setError(null);
    }

    private ProducerRecord<byte[], byte[]> record(SessionEvent event) {
        return new ProducerRecord<>(
                topic, event.getGroupId().getBytes(StandardCharsets.UTF_8), serializer.serialize(topic, event));
    }

    private CompletableFuture<Void> append(SessionEvent event) {
        CompletableFuture<Void> acknowledged = new CompletableFuture<>();
        producer.send(record(event), (place, failure) -> {
            if (failure == null) {
                acknowledged.complete(null);
            } else {
                acknowledged.completeExceptionally(failure);
            }
        });
        return acknowledged;
    }

    /**
     * Sessions of a partition's prompts, from one prompt on, in order.
     *
     * @param ended receives every end on the way
     */
    Map<String, List<SessionEvent>> read(AcceptedPrompt first, Consumer<SessionEvent> ended) {
        return read(
                first.partition().partition(), first.offset(), first.request().getReleasedAtMs(), ended);
    }

    /**
     * Ends of sessions in a partition without unfinished prompts.
     *
     * @param sinceMs earliest time, approximately
     */
    void readEnds(int partition, long sinceMs, Consumer<SessionEvent> ended) {
        read(partition, Long.MAX_VALUE, sinceMs, ended);
    }

    private Map<String, List<SessionEvent>> read(
            int number, long firstOffset, long sinceMs, Consumer<SessionEvent> ended) {
        TopicPartition partition = new TopicPartition(topic, number);
        Map<String, List<SessionEvent>> found = new LinkedHashMap<>();
        Duration limit = connection.patience();
        long end = endOf(partition, limit);
        try (LogReader log = new LogReader(connection.as("sessions"))) {
            OffsetAndTimestamp from = log.consumer()
                    .offsetsForTimes(Map.of(partition, Math.max(0, sinceMs - CLOCKS_DIFFER_MS)), limit)
                    .get(partition);
            if (from == null) {
                return found;
            }
            log.from(partition, from.offset());
            if (!log.readTo(
                    Map.of(partition, end),
                    ReadLimit.withoutProgress(limit),
                    record -> take(record, firstOffset, found, ended))) {
                throw new IllegalStateException("sessions could not be read back: " + log.progress() + " of " + end
                        + " came within " + limit.toSeconds() + " s (run.patience_seconds)");
            }
        }
        return found;
    }

    /** Including uncommitted records: a predecessor may have an open transaction. */
    private long endOf(TopicPartition partition, Duration limit) {
        try (LogReader uncommitted =
                new LogReader(connection.as("sessions-written"), Map.of("isolation.level", "read_uncommitted"))) {
            return uncommitted.end(partition, limit);
        }
    }

    private void take(
            ConsumerRecord<byte[], byte[]> record,
            long firstOffset,
            Map<String, List<SessionEvent>> found,
            Consumer<SessionEvent> ended) {
        SessionEvent event;
        try {
            event = deserializer.deserialize(record.topic(), record.value());
        } catch (MalformedRecordException e) {
            LOG.warn(
                    "skipped {}@{}, which is not a session event: {}", record.topic(), record.offset(), e.getMessage());
            return;
        }
        if (event == null
                || !event.getRunId().equals(connection.run().runId())
                || event.getEpoch() != connection.run().epoch()) {
            return;
        }
        if (event.getKind() == SessionEventKind.ENDED) {
            ended.accept(event);
        }
        if (event.getPromptSource().getOffset() >= firstOffset) {
            found.computeIfAbsent(event.getSessionId(), id -> new ArrayList<>()).add(event);
        }
    }

    @Override
    public void close() {
        producer.close(CLOSE_LIMIT);
    }
}
