package dev.millrace.generator.sampling;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.junit.jupiter.api.Test;

class CommittablePromptsTest {
    private static final TopicPartition P = new TopicPartition("prompts", 0);
    private static final TopicPartition Q = new TopicPartition("prompts", 1);
    private final CommittablePrompts ledger = new CommittablePrompts();

    @Test
    void shouldCommitOnlyUpToTheFirstUnfinishedPrompt() {
        ledger.read(P, 10, 2);
        ledger.read(P, 11, 1);
        ledger.read(P, 13, 1); // 12 was a transaction marker
        ledger.finished(P, 11);
        assertThat(ledger.takeOffsets()).containsOnly(Map.entry(P, new OffsetAndMetadata(10)));

        ledger.finished(P, 10);
        assertThat(ledger.takeOffsets()).isEmpty(); // 10 has a sample left

        ledger.finished(P, 10);
        assertThat(ledger.takeOffsets()).containsOnly(Map.entry(P, new OffsetAndMetadata(13)));
        assertThat(ledger.openPrompts()).isEqualTo(1);

        ledger.finished(P, 13);
        assertThat(ledger.takeOffsets()).containsOnly(Map.entry(P, new OffsetAndMetadata(14)));
        assertThat(ledger.openPrompts()).isZero();
    }

    @Test
    void shouldPassOverPromptsWithNothingToDoOnceTheirPredecessorsAreFinished() {
        ledger.read(P, 5, 1);
        ledger.read(P, 6, 0); // refused
        assertThat(ledger.takeOffsets()).containsOnly(Map.entry(P, new OffsetAndMetadata(5)));
        ledger.finished(P, 5);
        assertThat(ledger.takeOffsets()).containsOnly(Map.entry(P, new OffsetAndMetadata(7)));
    }

    @Test
    void shouldHandOutAgainWhatCouldNotBeCommitted() {
        ledger.read(P, 3, 1);
        ledger.finished(P, 3);
        assertThat(ledger.takeOffsets()).containsOnlyKeys(P);
        ledger.putBack(Set.of(P, Q));
        assertThat(ledger.takeOffsets()).containsOnly(Map.entry(P, new OffsetAndMetadata(4)));
    }

    @Test
    void shouldKeepPartitionsApart() {
        ledger.read(P, 0, 1);
        ledger.read(Q, 0, 1);
        ledger.finished(Q, 0);
        assertThat(ledger.takeOffsets().get(Q)).isEqualTo(new OffsetAndMetadata(1));
        ledger.forget(Set.of(P));
        assertThat(ledger.openPrompts()).isZero();
        assertThat(ledger.takeOffsets()).isEmpty();
    }

    @Test
    void shouldRefuseASampleOfAPromptThatIsNotOpen() {
        ledger.read(P, 1, 1);
        ledger.finished(P, 1);
        assertThatThrownBy(() -> ledger.finished(P, 1)).hasMessageContaining("no sample of prompts-0@1 is open");
        assertThatThrownBy(() -> ledger.finished(Q, 1)).hasMessageContaining("prompts-1@1");
    }
}
