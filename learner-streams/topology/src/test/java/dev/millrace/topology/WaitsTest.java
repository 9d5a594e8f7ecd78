package dev.millrace.topology;

import static dev.millrace.topology.Samples.rollout;
import static dev.millrace.topology.Samples.score;
import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.VersionSpan;
import dev.millrace.topology.task.Wait;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Wait reports of the stages. */
class WaitsTest {
    @TempDir
    Path directory;

    private TopologyHarness topology;

    @BeforeEach
    void open() {
        topology = new TopologyHarness(MillraceTopologyTest.batchesOf(4), directory);
    }

    @AfterEach
    void close() {
        topology.close();
    }

    private Wait only(String stage) {
        List<Wait> waits = topology.waits().stream()
                .filter(wait -> wait.stage().equals(stage))
                .toList();
        assertThat(waits).as("%s", topology.waits()).hasSize(1);
        return waits.get(0);
    }

    private void scored(String group, int sample) {
        Rollout rollout = rollout(group, sample).setReward(sample).build();
        topology.pipe(score(rollout, topology.pipe(rollout)).build());
    }

    @Test
    void shouldWaitForNothingWhereThereIsNothing() {
        topology.idle(Duration.ofSeconds(3));
        assertThat(topology.waits()).isEmpty();
    }

    @Test
    void shouldSayWhichRolloutWaitsForWhatAndWhenTheLastOfItCame() {
        scored("a", 0);
        scored("a", 1);
        topology.pipe(rollout("g", 0).build());
        topology.pipe(rollout("g", 1).build());
        topology.idle(Duration.ofSeconds(31));
        Wait wait = only("join");
        assertThat(wait.what())
                .isEqualTo("2 rollouts wait, the oldest, g/0, for 30 s for its score; the last score came 30 s ago");
        scored("h", 0);
        topology.idle(Duration.ofSeconds(1));
        assertThat(only("join").progress()).isNotEqualTo(wait.progress());
    }

    @Test
    void shouldSayWhichGroupIsShort() {
        scored("g", 0);
        topology.idle(Duration.ofSeconds(11));
        assertThat(only("assemble").what())
                .isEqualTo("1 groups are not ready, the oldest, g, since 10 s with 1 of 2 members");
    }

    @Test
    void shouldSayHowMuchABatchLacks() {
        scored("g", 0);
        scored("g", 1);
        topology.idle(Duration.ofSeconds(2));
        assertThat(only("queue").what())
                .isEqualTo("batch 0 is not cut: 1 groups of 2 sequences are ready, a batch takes 4 sequences");
    }

    @Test
    void shouldSayWhichBatchTheLearnerOwes() {
        for (String group : List.of("g", "h", "i", "j")) {
            scored(group, 0);
            scored(group, 1);
        }
        topology.idle(Duration.ofSeconds(2));
        assertThat(only("batches").what())
                .isEqualTo("2 batches wait for the learner, which has not consumed batch 0 yet");
        topology.pipe(Samples.version(1, 0));
        topology.idle(Duration.ofSeconds(2));
        assertThat(only("batches").what()).contains("1 batches", "has not consumed batch 1 yet");
        topology.pipe(Samples.version(2, 1));
        topology.idle(Duration.ofSeconds(2));
        assertThat(topology.waits()).isEmpty();
    }

    @Test
    void shouldSayThatWhatWouldBeABatchLeavesAsStale() {
        topology.pipe(Samples.version(100));
        topology.later(Duration.ofSeconds(1));
        scored("g", 0);
        scored("g", 1);
        topology.idle(Duration.ofSeconds(2));
        assertThat(topology.waits())
                .as("fewer than a batch")
                .noneMatch(wait -> wait.stage().equals("stale"));
        scored("h", 0);
        scored("h", 1);
        topology.idle(Duration.ofSeconds(2));
        assertThat(only("stale").what())
                .isEqualTo(
                        "batch 0 is not cut: 4 rollouts were dropped as stale since the previous batch, the last more than 8"
                                + " versions behind version 100");
        for (String group : List.of("i", "j")) {
            for (int sample = 0; sample < 2; sample++) {
                Rollout fresh = rollout(group, sample)
                        .setReward(sample)
                        .setVersionSpans(List.of(new VersionSpan(100L, 0, 3)))
                        .build();
                topology.pipe(score(fresh, topology.pipe(fresh)).build());
            }
        }
        assertThat(topology.batches()).hasSize(1);
        topology.idle(Duration.ofSeconds(2));
        assertThat(topology.waits())
                .as("training continues")
                .noneMatch(wait -> wait.stage().equals("stale"));
    }
}
