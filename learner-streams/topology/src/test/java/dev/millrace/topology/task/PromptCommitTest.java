package dev.millrace.topology.task;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Optional;
import org.junit.jupiter.api.Test;

class PromptCommitTest {
    private final PromptCommit commit = new PromptCommit(Optional.of("batches"), 100);

    @Test
    void shouldBeDueOnceForWhatSomebodyWaitsFor() {
        commit.made("batches");

        assertThat(commit.isDue(150)).isTrue();
        assertThat(commit.isDue(0)).isFalse();
    }

    @Test
    void shouldLeaveAllElseToTheInterval() {
        commit.made("outcomes");

        assertThat(commit.isDue(0)).isFalse();
    }

    @Test
    void shouldNotHurryATaskThatLagsBehind() {
        commit.made("batches");

        assertThat(commit.isDue(201)).isFalse();
        assertThat(commit.isDue(0)).as("what was made then").isFalse();
    }

    @Test
    void shouldNotHurryForNobody() {
        PromptCommit none = new PromptCommit(Optional.empty(), 100);
        none.made("batches");

        assertThat(none.isDue(0)).isFalse();
    }
}
