package dev.millrace.generator.staleness;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.log.LogConnection;
import dev.millrace.log.deadletter.DeadLetters;
import dev.millrace.log.deadletter.RedriveMark;
import dev.millrace.schemas.refusal.Refusal;
import dev.millrace.schemas.refusal.RefusalReason;
import dev.millrace.schemas.registry.InMemorySchemaRegistry;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.record.TimestampType;
import org.junit.jupiter.api.Test;

class LostSamplesTest {
    private static final RunTopics TOPICS = new RunTopics("millrace.");
    private static final int EPOCH = 1;
    private static final RunIdentity RUN = new RunIdentity("run-1", EPOCH, "policy");
    private final LostSamples lost = new LostSamples(
            new LogConnection(Map.of("bootstrap.servers", "nowhere:1"), TOPICS, RUN, new InMemorySchemaRegistry()));

    private static ConsumerRecord<byte[], byte[]> deadLetter(Headers headers, byte[] value) {
        return new ConsumerRecord<>(
                TOPICS.deadLetters(),
                0,
                17,
                1000,
                TimestampType.CREATE_TIME,
                0,
                0,
                new byte[] {1},
                value,
                headers,
                Optional.empty());
    }

    @Test
    void shouldTakeBackWhatItCountedForALetterThatWasRedriven() {
        Headers headers = DeadLetters.headers(
                new RecordHeaders(),
                new DeadLetters.Source(TOPICS.rollouts(), 3, 12, 900),
                Refusal.of(RefusalReason.REWARD, "reward", "reward must be finite: NaN")
                        .about("run-1", EPOCH, "0-17/3"),
                RUN);
        assertThat(lost.in(deadLetter(headers, new byte[] {2}))).isEqualTo(1);

        RedriveMark mark = new RedriveMark(0, 17, TOPICS.rollouts(), 3, 12, 99, 1, "", "run-1", EPOCH);
        assertThat(lost.in(deadLetter(
                        mark.record(TOPICS.deadLetters(), new byte[] {1}).headers(), null)))
                .isEqualTo(-1);
    }

    @Test
    void shouldNotCountLettersOfAnotherRunOrEpoch() {
        for (RedriveMark mark : List.of(
                new RedriveMark(0, 17, TOPICS.rollouts(), 3, 12, 99, 1, "", "run-2", EPOCH),
                new RedriveMark(0, 17, TOPICS.rollouts(), 3, 12, 99, 1, "", "run-1", EPOCH - 1))) {
            assertThat(lost.in(deadLetter(
                            mark.record(TOPICS.deadLetters(), new byte[] {1}).headers(), null)))
                    .isZero();
        }
    }

    @Test
    void shouldKeepALossThatIsBelowNothing() {
        ControllerState state = new ControllerState(4, 32, 0, 8).withLost(-1);
        assertThat(ControllerState.parse(state.text())).isEqualTo(state);
    }
}
