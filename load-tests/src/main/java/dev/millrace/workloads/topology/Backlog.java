package dev.millrace.workloads.topology;

import dev.millrace.schemas.LogCoordinates;
import dev.millrace.workloads.topology.RolloutShape.RolloutDraw;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.IntFunction;
import java.util.function.ObjIntConsumer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;

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
        LongAdder tokens = new LongAdder();
        long bytes = sendAll(
                producer,
                count,
                i -> {
                    RolloutDraw draw = run.records().draw(from + i);
                    tokens.add(draw.response().tokens());
                    return run.record(run.records().rollout(draw, newestVersion, firstMs + i), firstMs + i);
                },
                (at, i) -> places[i] = coordinates(at));
        bytes += sendAll(
                producer,
                count,
                i -> {
                    RolloutDraw draw = run.records().draw(from + i);
                    long atMs = firstMs + i + SCORES_BEHIND;
                    return run.record(run.records().score(draw, places[i], newestVersion, atMs), atMs);
                },
                (at, i) -> {});
        return new Backlog(count, tokens.sum(), bytes);
    }

    /** Returns the bytes sent, when all are acknowledged. */
    private static long sendAll(
            Producer<byte[], byte[]> producer,
            int count,
            IntFunction<ProducerRecord<byte[], byte[]>> records,
            ObjIntConsumer<RecordMetadata> acknowledged) {
        AtomicReference<Exception> failure = new AtomicReference<>();
        long bytes = 0;
        for (int i = 0; i < count; i++) {
            ProducerRecord<byte[], byte[]> record = records.apply(i);
            bytes += bytes(record);
            int place = i;
            producer.send(record, (at, failed) -> {
                if (failed == null) {
                    acknowledged.accept(at, place);
                } else {
                    failure.compareAndSet(null, failed);
                }
            });
        }
        producer.flush();
        Exception failed = failure.get();
        if (failed != null) {
            throw new LoadException("the backlog could not be published: " + failed.getMessage(), failed);
        }
        return bytes;
    }

    static LogCoordinates coordinates(RecordMetadata at) {
        return new LogCoordinates(at.topic(), at.partition(), at.offset());
    }

    public static long bytes(ProducerRecord<byte[], byte[]> record) {
        return (long) record.key().length + record.value().length;
    }
}
