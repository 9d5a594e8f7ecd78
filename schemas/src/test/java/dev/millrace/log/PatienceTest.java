package dev.millrace.log;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.errors.InvalidTimestampException;
import org.apache.kafka.common.errors.RecordTooLargeException;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.errors.TopicAuthorizationException;
import org.junit.jupiter.api.Test;

class PatienceTest {
    private final List<Long> pauses = new ArrayList<>();
    private long nanos = 5;
    private final Alarms alarms = new Alarms();
    private int asked;
    private Optional<String> cause = Optional.empty();
    private final Patience patience = patience(Duration.ofSeconds(10));

    private Patience patience(Duration limit) {
        return new Patience(
                "scorer-0",
                limit,
                alarms,
                () -> {
                    asked++;
                    return cause;
                },
                () -> nanos,
                pause -> {
                    pauses.add(pause.toMillis());
                    nanos += pause.toNanos();
                });
    }

    @Test
    void shouldTryAgainWithLongerPausesUntilItIsOver() {
        TimeoutException away = new TimeoutException("no answer");
        assertThatThrownBy(() -> {
                    while (patience.again(away, () -> false)) {
                        // fails again
                    }
                })
                .isInstanceOf(PatienceOverException.class)
                .hasCause(away)
                .hasMessage("scorer-0 has retried for 10 s (run.patience_seconds=10) without success: no answer;"
                        + " committed work is kept, and a restart continues from it");
        assertThat(pauses).startsWith(50L, 100L, 200L, 400L, 800L, 1_000L, 1_000L);
        assertThat(pauses.stream().mapToLong(Long::longValue).sum()).isBetween(10_000L, 11_000L);
    }

    @Test
    void shouldBeginAnewAfterASuccess() {
        TimeoutException away = new TimeoutException("no answer");
        patience.again(away, () -> false);
        nanos += Duration.ofSeconds(9).toNanos();
        patience.again(away, () -> false);
        patience.succeeded();
        nanos += Duration.ofSeconds(9).toNanos();
        assertThat(patience.again(away, () -> false)).isTrue();
        assertThat(pauses).containsExactly(50L, 100L, 50L);
    }

    @Test
    void shouldRaiseAnAlarmOnceItLastsAndLowerItWithASuccess() {
        Patience lasting = patience(Duration.ofSeconds(60));
        TimeoutException away = new TimeoutException("no answer");
        lasting.again(away, () -> false);
        assertThat(alarms.active()).isEmpty();

        nanos += Duration.ofSeconds(12).toNanos();
        lasting.again(away, () -> false);
        assertThat(alarms.active())
                .singleElement()
                .satisfies(alarm -> assertThat(alarm.text())
                        .isEqualTo("no progress for 12 s, retrying for up to 60 s (run.patience_seconds): no answer;"
                                + " to end it: make the cluster or the registry reachable again"));

        lasting.succeeded();
        assertThat(alarms.active()).isEmpty();
    }

    @Test
    void shouldSayThatAClockIsToBeSetWhereTheBrokerRefusesWhatIsDatedInItsFuture() {
        Patience lasting = patience(Duration.ofSeconds(60));
        KafkaException refused =
                new KafkaException("not committed", new InvalidTimestampException("Timestamp 2 is out of range"));
        lasting.again(refused, () -> false);
        nanos += Duration.ofSeconds(12).toNanos();
        lasting.again(refused, () -> false);

        assertThat(alarms.active())
                .singleElement()
                .satisfies(alarm -> assertThat(alarm.remedy())
                        .isEqualTo("correct the clock of this machine or of the broker: they differ by more than the"
                                + " topic's message.timestamp.after.max.ms"));
    }

    @Test
    void shouldSayTheTrueCauseOfWhatLastsAndAskForItOnce() {
        Patience lasting = patience(Duration.ofSeconds(60));
        TimeoutException away = new TimeoutException("no answer");
        lasting.again(away, () -> false);
        assertThat(asked).as("what is over at once is not looked into").isZero();

        cause = Optional.of("the topic rollouts was deleted; millrace repair says what is lost");
        nanos += Duration.ofSeconds(12).toNanos();
        lasting.again(away, () -> false);
        assertThat(alarms.active())
                .singleElement()
                .satisfies(alarm -> assertThat(alarm.text())
                        .isEqualTo("no progress for 12 s, retrying for up to 60 s (run.patience_seconds):"
                                + " the topic rollouts was deleted; millrace repair says what is lost"));
        nanos += Duration.ofSeconds(60).toNanos();
        assertThatThrownBy(() -> lasting.again(away, () -> false))
                .isInstanceOf(PatienceOverException.class)
                .hasMessageContaining("the topic rollouts was deleted")
                .hasCause(away);
        assertThat(asked).isEqualTo(1);
    }

    @Test
    void shouldCountAFailureAnewThatComesLongAfterTheLogWasBackAndNothingWasToBeDone() {
        TimeoutException away = new TimeoutException("no answer");
        patience.again(away, () -> false);
        nanos += Duration.ofSeconds(6).toNanos();
        patience.reopened();
        nanos += Duration.ofSeconds(3).toNanos();
        assertThat(patience.again(away, () -> false)).isTrue(); // the same trouble, of 9 s
        patience.reopened();
        nanos += Duration.ofSeconds(10).toNanos();
        assertThat(patience.again(away, () -> false)).isTrue();
        assertThat(pauses).containsExactly(50L, 100L, 50L);
    }

    @Test
    void shouldNotTryAgainWhatWaitingDoesNotMend() {
        for (RuntimeException lasting : List.of(
                new TopicAuthorizationException("rollouts"),
                new KafkaException("", new RecordTooLargeException("too large")),
                new IllegalStateException("a mistake of ours"))) {
            assertThatThrownBy(() -> patience.again(lasting, () -> false)).isSameAs(lasting);
        }
        assertThat(pauses).isEmpty();
    }

    @Test
    void shouldEndWithoutAWordOnceItIsStopped() {
        assertThat(patience.again(new TimeoutException("no answer"), () -> true))
                .isFalse();
        assertThat(pauses).isEmpty();
    }

    @Test
    void shouldNotBeginAnotherPatienceWhereOneIsOver() {
        PatienceOverException over = new PatienceOverException("tried for 10 s", new TimeoutException("no answer"));

        assertThatThrownBy(() -> patience.again(over, () -> false)).isSameAs(over);
    }
}
