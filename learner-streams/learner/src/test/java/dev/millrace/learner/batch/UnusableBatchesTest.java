package dev.millrace.learner.batch;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.learner.batch.BatchReader.UnusableBatches;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.junit.jupiter.api.Test;

class UnusableBatchesTest {
    private static final long SECOND = 1_000_000_000L;

    private final AtomicLong now = new AtomicLong(7);
    private final UnusableBatches unusable = new UnusableBatches(now::get);
    private final ConsumerRecord<byte[], byte[]> first = new ConsumerRecord<>("batches", 0, 3, null, null);
    private final ConsumerRecord<byte[], byte[]> second = new ConsumerRecord<>("batches", 0, 5, null, null);

    @Test
    void shouldGiveABatchAgainAfterFiveSecondsAndNotBefore() {
        unusable.add(first);

        now.addAndGet(5 * SECOND);
        assertThat(unusable.takeForRetry()).isEmpty();
        now.addAndGet(1);
        assertThat(unusable.takeForRetry()).contains(first);
        assertThat(unusable.isEmpty()).isTrue();
    }

    @Test
    void shouldTryRecordsOfOneBatchInTurn() {
        unusable.add(first);
        unusable.add(second);

        now.addAndGet(6 * SECOND);
        assertThat(unusable.takeForRetry()).contains(first);
        unusable.add(first);
        now.addAndGet(6 * SECOND);

        assertThat(unusable.takeForRetry()).contains(second);
    }

    @Test
    void shouldGiveUpAllOfThem() {
        unusable.add(first);
        unusable.add(second);

        assertThat(unusable.all()).containsExactly(first, second);
        unusable.clear();
        assertThat(unusable.isEmpty()).isTrue();
    }
}
