package dev.millrace.learner.batch;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.learner.batch.TrajectoryFetcher.PassedRecords;
import java.util.List;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.junit.jupiter.api.Test;

class PassedRecordsTest {
    private final PassedRecords passed = new PassedRecords(30);

    @Test
    void shouldGiveBackWhatWasPassedOnce() {
        passed.keep(record(0, 5, 10));
        passed.keep(record(1, 5, 10));

        assertThat(passed.take(0, List.of(4L, 5L))).containsOnlyKeys(5L);
        assertThat(passed.take(0, List.of(5L))).isEmpty();
        assertThat(passed.take(1, List.of(5L))).containsOnlyKeys(5L);
        assertThat(passed.bytes()).isZero();
    }

    @Test
    void shouldLetTheLowestOffsetsGoWhenThereAreTooManyBytes() {
        for (long offset = 0; offset < 5; offset++) {
            passed.keep(record(0, offset, 10));
        }

        assertThat(passed.bytes()).isEqualTo(30);
        assertThat(passed.take(0, List.of(0L, 1L, 2L, 3L, 4L))).containsOnlyKeys(2L, 3L, 4L);
    }

    @Test
    void shouldCountARecordOnceThatIsPassedTwice() {
        passed.keep(record(0, 7, 10));
        passed.keep(record(0, 7, 10));

        assertThat(passed.bytes()).isEqualTo(10);
    }

    private static ConsumerRecord<byte[], byte[]> record(int partition, long offset, int bytes) {
        return new ConsumerRecord<>("trajectories", partition, offset, new byte[0], new byte[bytes]);
    }
}
