package dev.millrace.log.deadletter;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.schemas.refusal.Refusal;
import dev.millrace.schemas.refusal.RefusalReason;
import java.nio.charset.StandardCharsets;
import java.util.Optional;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.record.TimestampType;
import org.junit.jupiter.api.Test;

class RedriveMarkTest {
    private static final byte[] KEY = "0-7".getBytes(StandardCharsets.UTF_8);
    private static final RedriveMark MARK =
            new RedriveMark(0, 17, "millrace.trajectories", 0, 41, 99, 1, "3@12", "run-1");

    private static ConsumerRecord<byte[], byte[]> read(ProducerRecord<byte[], byte[]> record) {
        return new ConsumerRecord<>(
                record.topic(),
                0,
                18,
                1000,
                TimestampType.CREATE_TIME,
                0,
                0,
                record.key(),
                record.value(),
                record.headers(),
                Optional.empty());
    }

    @Test
    void shouldReadBackWhatItWrote() {
        ProducerRecord<byte[], byte[]> record = MARK.record("millrace.dead-letters", KEY);
        assertThat(record.partition()).isZero();
        assertThat(record.value()).isNull();
        assertThat(RedriveMark.of(read(record))).contains(MARK);
    }

    @Test
    void shouldTakeALetterForNoMarkEvenIfItsRecordWasPutBackBefore() {
        Headers redriven = RedriveMark.headers(new RecordHeaders(), 0, 17);
        Headers refusedAgain = DeadLetters.headers(
                redriven,
                new DeadLetters.Source("millrace.rollouts", 3, 50, 5L),
                Refusal.of(RefusalReason.REWARD, "reward", "reward must be finite: NaN"));
        assertThat(RedriveMark.isRedriven(refusedAgain)).isTrue();
        assertThat(RedriveMark.of(
                        read(new ProducerRecord<>("millrace.dead-letters", 0, null, KEY, null, refusedAgain))))
                .isEmpty();
    }

    @Test
    void shouldGiveTheRecordItsOwnHeadersBackAndTheNewestLetter() {
        Headers own = new RecordHeaders().add("trace-id", KEY);
        Headers letter = DeadLetters.headers(
                RedriveMark.headers(own, 0, 17),
                new DeadLetters.Source("millrace.rollouts", 3, 50, 5L),
                Refusal.of(RefusalReason.REWARD, "reward", "reward must be finite: NaN"));
        Headers again = RedriveMark.headers(letter, 0, 21);
        assertThat(again.toArray()).hasSize(2);
        assertThat(again.lastHeader("trace-id").value()).isEqualTo(KEY);
        assertThat(DeadLetters.text(again, RedriveMark.LETTER)).isEqualTo("0@21");
    }
}
