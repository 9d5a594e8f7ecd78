package dev.millrace.runtime.evaluation;

import dev.millrace.log.EvaluationLog;
import dev.millrace.log.LogConnection;
import dev.millrace.log.transaction.TransactionalWriter;
import dev.millrace.policy.session.Engine;
import dev.millrace.schemas.EngineIdentity;
import dev.millrace.schemas.ServerRole;
import dev.millrace.schemas.Serving;
import dev.millrace.schemas.VersionEvaluation;
import dev.millrace.schemas.run.EvaluationKey;
import dev.millrace.schemas.run.ServerKey;
import dev.millrace.schemas.serde.AvroSerde;
import java.time.Clock;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.function.BooleanSupplier;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.serialization.Serializer;

/**
 * The evaluator's side of the log: what was evaluated before, each evaluation once, and which version is under evaluation, which is kept
 * meanwhile.
 *
 * <p>Whoever opens it shuts out an older holder of the id, and reads after that: so a version that is not found is evaluated by nobody
 * else, and one whose record came through before a kill is found. Owned by one thread at a time.
 */
final class EvaluationJournal implements AutoCloseable {
    static final String ROLE = "evaluator";
    private static final int TRANSACTION_TIMEOUT_MS = 30_000;
    private static final Duration READ_LIMIT = Duration.ofSeconds(30);
    private static final long HEARTBEAT_NANOS = Duration.ofSeconds(2).toNanos();

    private final LogConnection connection;
    private final Clock clock;
    private final EvaluationLog log;
    private final TransactionalWriter writer;
    private final Serializer<VersionEvaluation> evaluations;
    private final Serializer<Serving> servings;
    private boolean open;
    private OptionalLong served = OptionalLong.empty();
    private long servedSinceMs;
    private long heardNanos;
    private long tokens;

    EvaluationJournal(LogConnection connection, Clock clock) {
        this.connection = connection;
        this.clock = clock;
        this.evaluations =
                AvroSerde.of(VersionEvaluation.class, connection.registry()).serializer();
        this.servings = AvroSerde.of(Serving.class, connection.registry()).serializer();
        this.log = new EvaluationLog(connection);
        this.writer = TransactionalWriter.of(
                connection,
                connection.scoped(ROLE),
                TRANSACTION_TIMEOUT_MS,
                Map.of("client.id", ROLE, "compression.type", "lz4", "linger.ms", 0));
    }

    /**
     * Shuts out whoever had the id before, and reads what is evaluated.
     *
     * @return false if it was stopped before that
     */
    boolean open(BooleanSupplier stopped) {
        open = writer.takeOver(stopped, this::catchUp);
        return open;
    }

    boolean isOpen() {
        return open;
    }

    private void catchUp() {
        if (!log.update(READ_LIMIT)) {
            throw new TimeoutException("topic " + connection.topics().evaluations()
                    + " could not be read to its end within " + READ_LIMIT.toSeconds() + " s");
        }
    }

    EvaluationLog log() {
        return log;
    }

    /**
     * Says that a version is being evaluated, once and then every few seconds, so that it is kept.
     *
     * @param stopped gives up attempts that fail
     */
    void evaluating(long version, BooleanSupplier stopped) {
        boolean isNew = served.isEmpty() || served.getAsLong() != version;
        if (!isNew && System.nanoTime() - heardNanos < HEARTBEAT_NANOS) {
            return;
        }
        if (isNew) {
            served = OptionalLong.of(version);
            servedSinceMs = clock.millis();
        }
        heardNanos = System.nanoTime();
        send(serving(version, false), stopped);
    }

    /** Says that no version is needed any more. */
    void left(BooleanSupplier stopped) {
        if (served.isPresent()) {
            send(serving(served.getAsLong(), true), stopped);
            served = OptionalLong.empty();
        }
    }

    /**
     * Writes an evaluation, unless it is there.
     *
     * @return false if it was stopped before it could be written
     */
    boolean write(VersionEvaluation evaluation, BooleanSupplier stopped) {
        String topic = connection.topics().evaluations();
        ProducerRecord<byte[], byte[]> record = new ProducerRecord<>(
                topic, 0, EvaluationKey.of(evaluation).bytes(), evaluations.serialize(topic, evaluation));
        tokens += EvaluationRecords.tokens(evaluation);
        while (!log.has(evaluation)) {
            if (send(record, stopped)) {
                awaitRead(evaluation); // a commit is answered before its end is visible to readers
            } else if (stopped.getAsBoolean()) {
                return log.has(evaluation);
            }
        }
        return true;
    }

    private void awaitRead(VersionEvaluation evaluation) {
        long since = System.nanoTime();
        while (!log.has(evaluation)) {
            catchUp();
            if (System.nanoTime() - since > READ_LIMIT.toNanos()) {
                throw new TimeoutException("the evaluation of version " + evaluation.getVersion()
                        + " is committed and cannot be read within " + READ_LIMIT.toSeconds() + " s");
            }
        }
    }

    /** @return false if it may not be there; what the log says is read then */
    private boolean send(ProducerRecord<byte[], byte[]> record, BooleanSupplier stopped) {
        try {
            writer.write(out -> out.send(record));
            return true;
        } catch (RuntimeException e) {
            writer.recover(e, stopped, this::catchUp);
            return false;
        }
    }

    private ProducerRecord<byte[], byte[]> serving(long version, boolean left) {
        String topic = connection.topics().serving();
        Serving serving = new Serving(
                connection.run().runId(),
                connection.run().epoch(),
                ROLE,
                ServerRole.EVALUATOR,
                connection.run().policyId(),
                version,
                servedSinceMs,
                clock.millis(),
                tokens,
                null,
                left,
                new EngineIdentity("onnxruntime", Engine.runtimeVersion(), "float32", null),
                List.of(),
                null);
        return new ProducerRecord<>(topic, ServerKey.of(serving), servings.serialize(topic, serving));
    }

    @Override
    public void close() {
        writer.close();
        log.close();
    }
}
