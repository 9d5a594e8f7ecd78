package dev.millrace.workloads;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.log.deadletter.DeadLetterHeaders;
import dev.millrace.schemas.LogCoordinates;
import dev.millrace.schemas.Outcome;
import dev.millrace.topology.task.OutcomeReason;
import dev.millrace.workloads.TopicWatch.Departures;
import dev.millrace.workloads.topology.LoadException;
import java.nio.charset.StandardCharsets;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.junit.jupiter.api.Test;

class DeparturesTest {
    private final Departures departures = new Departures();

    private void leave(OutcomeReason reason, String rollout, String detail) {
        LogCoordinates source = new LogCoordinates("rollouts", 0, 7L);
        departures.left(new Outcome("run", 0, rollout, "group-0", "batch", reason.code(), detail, 3L, source, 1L));
    }

    @Test
    void shouldLetAWaitGoOnWhileNothingLeft() {
        assertThatCode(departures::requireNone).doesNotThrowAnyException();
        assertThat(departures.of(OutcomeReason.STALE)).isZero();
    }

    @Test
    void shouldEndAWaitSayingWhatLeftAndWhy() {
        leave(OutcomeReason.STALE, "group-0/0", "all its tokens are more than 8 versions behind version 17");
        leave(OutcomeReason.STALE, "group-0/1", "all its tokens are more than 8 versions behind version 17");
        leave(OutcomeReason.UNSCORED, "group-9/0", "no score came");

        assertThat(departures.of(OutcomeReason.STALE)).isEqualTo(2);
        assertThatThrownBy(departures::requireNone)
                .isInstanceOf(LoadException.class)
                .hasMessage(
                        "cannot see every rollout in a batch: 2 as stale, 1 as unscored left without reaching a batch;"
                                + " the first, group-0/0: all its tokens are more than 8 versions behind version 17");
    }

    @Test
    void shouldCountWhatWasRefused() {
        ConsumerRecord<byte[], byte[]> letter = new ConsumerRecord<>("dead-letters", 0, 4, new byte[0], new byte[0]);
        letter.headers().add(DeadLetterHeaders.MESSAGE, "it is no record".getBytes(StandardCharsets.UTF_8));
        departures.refused(letter);

        assertThat(departures).hasToString("1 as refused left without reaching a batch; the first, it is no record");
    }
}
