package dev.millrace.workloads.topology;

import dev.millrace.schemas.LogCoordinates;
import dev.millrace.workloads.topology.RolloutShape.RolloutDraw;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.jspecify.annotations.Nullable;

/**
 * Rollouts and scores that lie on the log before anything reads them, timestamped a millisecond apart, scores 64
 * rollouts later, the last one now.
 *
 * @param responseTokens in all of them
 * @param bytes keys and values of rollouts and scores, uncompressed
 */
public record Backlog(long rollouts, long responseTokens, long bytes) {
    private static final int SCORES_BEHIND = 64;
    private static final int LINGER_MS = 20;

    /** Publishes rollouts {@code [from, from + count)}, then their scores; returns when all are committed. */
    public static Backlog publish(SyntheticRun run, long from, int count, long newestVersion)
            throws InterruptedException {
        try (Producer<byte[], byte[]> producer = run.producer(LINGER_MS)) {
            return send(producer, run, from, count, newestVersion);
        }
    }

    /** Publishes rollouts {@code [0, count)} and their scores in a transaction that {@link Hidden#reveal} commits. */
    static Hidden hidden(SyntheticRun run, int count, long newestVersion) throws InterruptedException {
        Producer<byte[], byte[]> producer = run.transactionalProducer(LINGER_MS);
        try {
            producer.initTransactions();
            producer.beginTransaction();
            return new Hidden(send(producer, run, 0, count, newestVersion), producer);
        } catch (RuntimeException | InterruptedException e) {
            producer.close(Duration.ZERO);
            throw e;
        }
    }

    /** A whole backlog that readers of committed records see at once, or never. */
    record Hidden(Backlog backlog, Producer<byte[], byte[]> producer) implements AutoCloseable {
        void reveal() {
            producer.commitTransaction();
        }

        @Override
        public void close() {
            producer.close();
        }
    }

    private static Backlog send(
            Producer<byte[], byte[]> producer, SyntheticRun run, long from, int count, long newestVersion)
            throws InterruptedException {
        long firstMs = System.currentTimeMillis() - count - SCORES_BEHIND;
        LogCoordinates[] places = new LogCoordinates[count];
        AtomicReference<Exception> failure = new AtomicReference<>();
        long tokens = 0;
        long bytes = 0;
        for (int i = 0; i < count; i++) {
            RolloutDraw draw = run.records().draw(from + i);
            tokens += draw.response().tokens();
            ProducerRecord<byte[], byte[]> record =
                    run.record(run.records().rollout(draw, newestVersion, firstMs + i), firstMs + i);
            bytes += bytes(record);
            int place = i;
            producer.send(record, (at, failed) -> {
                places[place] = failed == null ? coordinates(at) : null;
                failure.compareAndSet(null, failed);
            });
        }
        producer.flush();
        requireNone(failure.get());
        for (int i = 0; i < count; i++) {
            RolloutDraw draw = run.records().draw(from + i);
            long atMs = firstMs + i + SCORES_BEHIND;
            ProducerRecord<byte[], byte[]> record =
                    run.record(run.records().score(draw, places[i], newestVersion, atMs), atMs);
            bytes += bytes(record);
            producer.send(record, (at, failed) -> failure.compareAndSet(null, failed));
        }
        producer.flush();
        requireNone(failure.get());
        return new Backlog(count, tokens, bytes);
    }

    static LogCoordinates coordinates(RecordMetadata at) {
        return new LogCoordinates(at.topic(), at.partition(), at.offset());
    }

    public static long bytes(ProducerRecord<byte[], byte[]> record) {
        return (long) record.key().length + record.value().length;
    }

    private static void requireNone(@Nullable Exception failure) {
        if (failure != null) {
            throw new LoadException("the backlog could not be published: " + failure.getMessage(), failure);
        }
    }
}
