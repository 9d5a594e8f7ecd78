package dev.millrace.log.scan;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.MockConsumer;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.WakeupException;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class LogReaderTest {
    private static final TopicPartition FIRST = new TopicPartition("rollouts", 0);
    private static final TopicPartition SECOND = new TopicPartition("rollouts", 1);
    private static final ReadLimit NONE = ReadLimit.within(Duration.ZERO);
    private static final ReadLimit LONG = ReadLimit.within(Duration.ofSeconds(90));

    private final MockConsumer<byte[], byte[]> consumer = new MockConsumer<>("earliest");
    private final LogReader log = new LogReader(consumer);
    private final List<String> read = new ArrayList<>();

    @BeforeEach
    void twoPartitions() {
        consumer.updatePartitions(
                "rollouts",
                List.of(
                        new PartitionInfo("rollouts", 0, null, null, null),
                        new PartitionInfo("rollouts", 1, null, null, null)));
        consumer.updateBeginningOffsets(Map.of(FIRST, 3L, SECOND, 0L));
    }

    private void take(ConsumerRecord<byte[], byte[]> record) {
        read.add(record.partition() + "@" + record.offset());
    }

    private void lies(TopicPartition partition, long... offsets) {
        for (long offset : offsets) {
            consumer.addRecord(
                    new ConsumerRecord<>(partition.topic(), partition.partition(), offset, null, new byte[1]));
        }
    }

    @Test
    void shouldReadATopicFromItsBeginningToTheEnds() {
        assertThat(log.fromBeginning("rollouts")).containsExactly(FIRST, SECOND);
        consumer.schedulePollTask(() -> lies(FIRST, 3, 4));
        consumer.schedulePollTask(() -> lies(SECOND, 0));

        assertThat(log.readTo(Map.of(FIRST, 5L, SECOND, 1L), LONG, this::take)).isTrue();
        assertThat(read).containsExactly("0@3", "0@4", "1@0");
        assertThat(log.progress()).isEqualTo("rollouts-0@5, rollouts-1@1");
    }

    @Test
    void shouldFetchNothingWhereTheEndIsReachedAlready() {
        log.from(FIRST, 7);
        lies(FIRST, 7);
        assertThat(log.readTo(Map.of(FIRST, 7L), NONE, this::take)).isTrue();
        assertThat(read).isEmpty();
    }

    @Test
    void shouldSayThatItsLimitPassedAndGoOnFromThere() {
        log.from(FIRST, 3);
        lies(FIRST, 3);
        assertThat(log.readTo(Map.of(FIRST, 5L), NONE, this::take)).isFalse();
        assertThat(read).containsExactly("0@3");

        consumer.schedulePollTask(() -> lies(FIRST, 4, 5));
        assertThat(log.readTo(Map.of(FIRST, 5L), LONG, this::take)).isTrue();
        assertThat(read).containsExactly("0@3", "0@4", "0@5");
    }

    @Test
    void shouldBeginItsLimitAnewWithEveryStepForward() {
        log.from(FIRST, 3);
        ReadLimit impatient = ReadLimit.withoutProgress(Duration.ZERO);
        consumer.schedulePollTask(() -> lies(FIRST, 3));
        consumer.schedulePollTask(() -> lies(FIRST, 4));
        assertThat(log.readTo(Map.of(FIRST, 6L), impatient, this::take)).isFalse();
        assertThat(read).containsExactly("0@3", "0@4");
    }

    @Test
    void shouldStopWhereSomebodyHasEnough() {
        log.from(FIRST, 3);
        consumer.schedulePollTask(() -> lies(FIRST, 3));
        consumer.schedulePollTask(() -> lies(FIRST, 4));
        assertThat(log.readUntil(() -> read.size() == 1, LONG, this::take)).isTrue();
        assertThat(read).containsExactly("0@3");
    }

    @Test
    void shouldFollowUntilItIsStopped() {
        log.fromBeginning("rollouts");
        consumer.schedulePollTask(() -> lies(FIRST, 3));
        consumer.schedulePollTask(() -> lies(FIRST, 4));
        List<Integer> fetches = new ArrayList<>();
        log.follow(this::take, () -> {
            fetches.add(read.size());
            if (fetches.size() == 3) {
                log.stop();
            }
        });
        assertThat(read).containsExactly("0@3", "0@4");
        assertThat(fetches).containsExactly(1, 2, 2);
    }

    @Test
    void shouldEndAReadingThatIsWokenAndAFollowingThatIsNotStopped() {
        log.from(FIRST, 3);
        log.wakeup();
        assertThatThrownBy(() -> log.readTo(Map.of(FIRST, 9L), LONG, this::take))
                .isInstanceOf(WakeupException.class);
        log.wakeup();
        assertThatThrownBy(() -> log.follow(this::take, () -> {})).isInstanceOf(WakeupException.class);
    }

    @Test
    void shouldRefuseATopicThatIsNotThere() {
        assertThatThrownBy(() -> log.fromBeginning("rolouts"))
                .isInstanceOf(IllegalStateException.class)
                .hasMessage("topic rolouts does not exist; create the run's topics first");
    }
}
