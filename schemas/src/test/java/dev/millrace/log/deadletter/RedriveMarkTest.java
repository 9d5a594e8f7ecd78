package dev.millrace.log.deadletter;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.schemas.LogCoordinates;
import dev.millrace.schemas.rollout.Refusal;
import dev.millrace.schemas.rollout.RefusalReason;
import dev.millrace.schemas.run.RunIdentity;
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
    private static final RunIdentity RUN = new RunIdentity("run-1", 2, "policy");
    private static final RedriveMark MARK = new RedriveMark(
            0,
            17,
            new LogCoordinates("millrace.trajectories", 0, 41L),
            99,
            1,
            "3@12",
            new RedriveMark.Subject("0-17/3", "run-1", 2));

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
    void shouldTakeALetterForNoMarkEvenIfItsRecordWasRedrivenBefore() {
        Headers redriven = RedriveMark.headers(new RecordHeaders(), 0, 17);
        Headers refusedAgain = DeadLetters.headers(
                redriven,
                new DeadLetters.Source("millrace.rollouts", 3, 50, 5L),
                Refusal.of(RefusalReason.REWARD, "reward", "reward must be finite: NaN"),
                RUN);
        assertThat(RedriveMark.isRedriven(refusedAgain)).isTrue();
        assertThat(RedriveMark.of(
                        read(new ProducerRecord<>("millrace.dead-letters", 0, null, KEY, null, refusedAgain))))
                .isEmpty();
    }

    @Test
    void shouldSayWhoseTheRecordIsAndWhoRefusedIt() {
        DeadLetters.Source source = new DeadLetters.Source("millrace.rollouts", 3, 50, 5L);
        Refusal refusal = Refusal.of(RefusalReason.WRONG_EPOCH, "epoch", "the record is of epoch 1");
        Headers known = DeadLetters.headers(new RecordHeaders(), source, refusal.about("run-1", 1, "1-7/0"), RUN);
        Headers unknown = DeadLetters.headers(new RecordHeaders(), source, refusal, RUN);

        assertThat(DeadLetterHeaders.text(known, "millrace.error.run-id")).isEqualTo("run-1");
        assertThat(DeadLetterHeaders.text(known, "millrace.error.epoch")).isEqualTo("1");
        assertThat(known.lastHeader(DeadLetterHeaders.RUN_ID)).isNotNull();
        assertThat(unknown.lastHeader(DeadLetterHeaders.RUN_ID)).isNull();
        assertThat(DeadLetterHeaders.epoch(unknown, DeadLetterHeaders.EPOCH)).isEqualTo(-1);
        assertThat(DeadLetterHeaders.text(unknown, "millrace.error.refused-by.run-id"))
                .isEqualTo("run-1");
        assertThat(DeadLetterHeaders.epoch(unknown, DeadLetterHeaders.REFUSED_BY_EPOCH))
                .isEqualTo(2);
    }

    @Test
    void shouldGiveTheRecordItsOwnHeadersBackAndTheNewestLetter() {
        Headers own = new RecordHeaders().add("trace-id", KEY);
        Headers letter = DeadLetters.headers(
                RedriveMark.headers(own, 0, 17),
                new DeadLetters.Source("millrace.rollouts", 3, 50, 5L),
                Refusal.of(RefusalReason.REWARD, "reward", "reward must be finite: NaN"),
                RUN);
        Headers again = RedriveMark.headers(letter, 0, 21);
        assertThat(again.toArray()).hasSize(2);
        assertThat(again.lastHeader("trace-id").value()).isEqualTo(KEY);
        assertThat(DeadLetterHeaders.text(again, DeadLetterHeaders.REDRIVEN_FROM))
                .isEqualTo("0@21");
    }
}
