package dev.millrace.generator.sampling;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.generator.sampling.PromptSource.CommittablePrompts;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.junit.jupiter.api.Test;

class CommittablePromptsTest {
    private static final TopicPartition P = new TopicPartition("prompts", 0);
    private static final TopicPartition Q = new TopicPartition("prompts", 1);
    private final CommittablePrompts committable = new CommittablePrompts();

    @Test
    void shouldCommitOnlyUpToTheFirstUnfinishedPrompt() {
        committable.read(P, 10, 2, Optional.empty());
        committable.read(P, 11, 1, Optional.empty());
        committable.read(P, 13, 1, Optional.empty()); // 12 was a transaction marker
        committable.finished(P, 11);
        assertThat(committable.takeOffsets(Set.of(), "")).containsOnly(Map.entry(P, new OffsetAndMetadata(10)));

        committable.finished(P, 10);
        assertThat(committable.takeOffsets(Set.of(), "")).isEmpty(); // 10 has a sample left

        committable.finished(P, 10);
        assertThat(committable.takeOffsets(Set.of(), "")).containsOnly(Map.entry(P, new OffsetAndMetadata(13)));
        assertThat(committable.openPrompts()).isEqualTo(1);

        committable.finished(P, 13);
        assertThat(committable.takeOffsets(Set.of(), "")).containsOnly(Map.entry(P, new OffsetAndMetadata(14)));
        assertThat(committable.openPrompts()).isZero();
    }

    @Test
    void shouldHandOutTheLeadersEpochInWhichTheNewestWasWritten() {
        committable.read(P, 10, 1, Optional.of(3));
        committable.read(P, 11, 1, Optional.of(4));
        committable.finished(P, 10);
        assertThat(committable.takeOffsets(Set.of(), "m"))
                .containsOnly(Map.entry(P, new OffsetAndMetadata(11, Optional.of(4), "m")));
    }

    @Test
    void shouldPassOverPromptsWithNothingToDoOnceTheirPredecessorsAreFinished() {
        committable.read(P, 5, 1, Optional.empty());
        committable.read(P, 6, 0, Optional.empty()); // refused
        assertThat(committable.takeOffsets(Set.of(), "")).containsOnly(Map.entry(P, new OffsetAndMetadata(5)));
        committable.finished(P, 5);
        assertThat(committable.takeOffsets(Set.of(), "")).containsOnly(Map.entry(P, new OffsetAndMetadata(7)));
    }

    @Test
    void shouldHandOutAgainWhatCouldNotBeCommitted() {
        committable.read(P, 3, 1, Optional.empty());
        committable.finished(P, 3);
        assertThat(committable.takeOffsets(Set.of(), "")).containsOnlyKeys(P);
        committable.requeue(Set.of(P, Q));
        assertThat(committable.takeOffsets(Set.of(), "")).containsOnly(Map.entry(P, new OffsetAndMetadata(4)));
    }

    @Test
    void shouldKeepPartitionsApart() {
        committable.read(P, 0, 1, Optional.empty());
        committable.read(Q, 0, 1, Optional.empty());
        committable.finished(Q, 0);
        assertThat(committable.takeOffsets(Set.of(), "").get(Q)).isEqualTo(new OffsetAndMetadata(1));
        committable.forget(Set.of(P));
        assertThat(committable.openPrompts()).isZero();
        assertThat(committable.takeOffsets(Set.of(), "")).isEmpty();
    }

    @Test
    void shouldRefuseASampleOfAPromptThatIsNotOpen() {
        committable.read(P, 1, 1, Optional.empty());
        committable.finished(P, 1);
        assertThatThrownBy(() -> committable.finished(P, 1)).hasMessageContaining("no sample of prompts-0@1 is open");
        assertThatThrownBy(() -> committable.finished(Q, 1)).hasMessageContaining("prompts-1@1");
    }

    @Test
    void shouldMarkWhatIsHandedOutAndHandOutWhatIsNamedAgain() {
        committable.read(P, 4, 1, Optional.empty());
        committable.read(Q, 0, 0, Optional.empty());
        assertThat(committable.takeOffsets(Set.of(), "a/0"))
                .containsOnly(
                        Map.entry(P, new OffsetAndMetadata(4, "a/0")), Map.entry(Q, new OffsetAndMetadata(1, "a/0")));
        assertThat(committable.takeOffsets(Set.of(P), "a/1"))
                .containsOnly(Map.entry(P, new OffsetAndMetadata(4, "a/1")));
    }
}
