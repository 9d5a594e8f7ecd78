package dev.millrace.learner.batch;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.LongSupplier;
import org.apache.kafka.clients.consumer.ConsumerRecord;

/**
 * Records of the due batch that could not be trained on. Each is tried again from time to time, since what is away may have come
 * back, until another record of the same id is trained on. Not thread-safe.
 */
final class UnusableBatches {
    private static final long RETRY_NANOS = 5_000_000_000L;

    private final LongSupplier nanoTime;
    private final List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
    private long since;

    /** @param nanoTime as {@link System#nanoTime()} */
    UnusableBatches(LongSupplier nanoTime) {
        this.nanoTime = nanoTime;
    }

    void add(ConsumerRecord<byte[], byte[]> record) {
        records.add(record);
        since = nanoTime.getAsLong();
    }

    boolean isEmpty() {
        return records.isEmpty();
    }

    /** The one to be tried again, which is none of them until it is added once more; empty if it is too early, or there is none. */
    Optional<ConsumerRecord<byte[], byte[]>> takeForRetry() {
        if (records.isEmpty() || nanoTime.getAsLong() - since <= RETRY_NANOS) {
            return Optional.empty();
        }
        since = nanoTime.getAsLong();
        return Optional.of(records.remove(0));
    }

    List<ConsumerRecord<byte[], byte[]>> all() {
        return records;
    }

    /** None of them will be tried again. */
    void clear() {
        records.clear();
    }
}
