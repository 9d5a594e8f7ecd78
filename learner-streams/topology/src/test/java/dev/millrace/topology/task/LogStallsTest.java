package dev.millrace.topology.task;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.tuple;

import dev.millrace.log.Alarm;
import dev.millrace.log.Alarms;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.consumer.MockConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.junit.jupiter.api.Test;

class LogStallsTest {
    private static final TopicPartition SCORES = new TopicPartition("r.scores", 0);

    private final MockConsumer<byte[], byte[]> committed = new MockConsumer<>("earliest") {
        @Override
        public synchronized Map<TopicPartition, OffsetAndMetadata> committed(Set<TopicPartition> of) {
            return Map.of(SCORES, new OffsetAndMetadata(next));
        }
    };
    private final MockConsumer<byte[], byte[]> written = new MockConsumer<>("earliest");
    private final Alarms alarms = new Alarms();
    private final LogStalls stalls = new LogStalls(
            committed,
            written,
            Set.of(SCORES.topic()),
            60_000,
            alarms,
            "millrace repair --do abort",
            "millrace repair --run-dir r");
    private long next;

    private void log(long begin, long stable, long end) {
        committed.updatePartitions(SCORES.topic(), List.of(new PartitionInfo(SCORES.topic(), 0, null, null, null)));
        written.updateBeginningOffsets(Map.of(SCORES, begin));
        committed.updateEndOffsets(Map.of(SCORES, stable));
        written.updateEndOffsets(Map.of(SCORES, end));
    }

    @Test
    void shouldNameATransactionThatHoldsTheLogBackAndTheCommandThatEndsIt() {
        log(0, 17, 40);
        stalls.check(0);
        stalls.check(59_999);
        assertThat(alarms.active()).isEmpty();

        stalls.check(60_000);
        assertThat(alarms.active())
                .extracting(Alarm::name, Alarm::subject, Alarm::text)
                .containsExactly(tuple(
                        "open-transaction",
                        "r.scores-0",
                        "a transaction that began at offset 17 has been open for 60 s, and read_committed"
                                + " consumers do not see the records after it, up to offset 40, until it"
                                + " ends; to end it: millrace repair --do abort"));

        log(0, 41, 60); // it has ended, and the next one has begun
        stalls.check(60_001);
        assertThat(alarms.active()).isEmpty();
    }

    @Test
    void shouldSayNothingOfALogThatStandsStillWithoutATransaction() {
        log(0, 40, 40);
        stalls.check(0);
        stalls.check(600_000);
        assertThat(alarms.active()).isEmpty();
    }

    @Test
    void shouldSayWhatRetentionHasTakenThatWasNotRead() {
        next = 10;
        log(10, 40, 40);
        stalls.check(0);
        assertThat(alarms.active()).isEmpty();

        log(25, 40, 40);
        stalls.check(1);
        next = 40; // the consumer continues after the gap
        stalls.check(2);
        assertThat(alarms.active())
                .extracting(Alarm::name, Alarm::subject, Alarm::text)
                .containsExactly(tuple(
                        "records-removed",
                        "r.scores-0",
                        "retention has removed offsets 10 to 24 before the topology read them; records that wait"
                                + " for these wait until their deadline; to end it: millrace repair --run-dir r"));
    }
}
