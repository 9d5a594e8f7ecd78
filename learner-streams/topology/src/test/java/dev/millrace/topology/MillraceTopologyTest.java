package dev.millrace.topology;

import static dev.millrace.topology.Samples.TOPICS;
import static dev.millrace.topology.Samples.rollout;
import static dev.millrace.topology.Samples.score;
import static dev.millrace.topology.Samples.version;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.topology.batch.BatchConfig;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class MillraceTopologyTest {
    private static final TopologyConfig DEFAULTS = TopologyConfig.defaults();

    @TempDir
    Path directory;

    static TopologyConfig batchesOf(int sequences) {
        return new TopologyConfig(
                DEFAULTS.ingress(),
                DEFAULTS.join(),
                DEFAULTS.groups(),
                new BatchConfig(sequences, 0, BatchConfig.Order.COMPLETION, 0, false),
                DEFAULTS.runtime());
    }

    @Test
    void shouldJoinARolloutWithItsScore() {
        try (TopologyHarness topology = new TopologyHarness(DEFAULTS, directory)) {
            Rollout rollout = rollout("g", 0).build();
            long offset = topology.pipe(rollout);
            topology.pipe(score(rollout, offset, -0.5f, -0.5f, -0.1f).build());

            Trajectory trajectory = topology.trajectories().get(0);
            assertThat(trajectory.getRolloutId()).isEqualTo("g/0");
            assertThat(trajectory.getRolloutSource().getOffset()).isEqualTo(offset);
            assertThat(trajectory.getProximalVersion()).isEqualTo(4);
        }
    }

    @Test
    void shouldBatchCompleteGroupsWithAdvantagesAgainstTheGroupsMean() {
        try (TopologyHarness topology = new TopologyHarness(batchesOf(2), directory)) {
            topology.pipe(version(3));
            topology.pipe(version(4));
            Rollout good = rollout("g", 0).setReward(1.0).build();
            Rollout bad = rollout("g", 1).setReward(0.0).build();
            topology.pipe(score(good, topology.pipe(good)).build());
            assertThat(topology.batches()).isEmpty();
            topology.pipe(score(bad, topology.pipe(bad)).build());

            LearnerBatch batch = topology.batches().get(0);
            assertThat(batch.getBatchId()).isZero();
            assertThat(batch.getAssembledVersion()).isEqualTo(4);
            assertThat(batch.getStalenessMax()).isEqualTo(1);
            assertThat(batch.getTrainedTokens()).isEqualTo(6);
            assertThat(batch.getEntries()).extracting("rolloutId").containsExactly("g/0", "g/1");
            assertThat(batch.getEntries()).extracting("offset").containsExactly(0L, 1L);
            assertThat(batch.getEntries().get(0).getAdvantage()).isEqualTo(0.5);
            assertThat(batch.getEntries().get(1).getAdvantage()).isEqualTo(-0.5);
            assertThat(batch.getEssRatio()).isEqualTo(1.0);
            assertThat(batch.getStepScale()).isEqualTo(1.0);
            assertThat(batch.getStages())
                    .extracting("stage")
                    .containsExactly(
                            "order",
                            "staleness",
                            "token_tis",
                            "grpo",
                            "rollout_correction",
                            "second_moment",
                            "m2po",
                            "ess");
            assertThat(topology.outcomes()).isEmpty();
            assertThat(topology.deadLetters()).isEmpty();
        }
    }

    @Test
    void shouldRecordWeightsWhereAReaderCannotMakeThem() {
        TopologyConfig recording = new TopologyConfig(
                DEFAULTS.ingress(),
                DEFAULTS.join(),
                DEFAULTS.groups(),
                new BatchConfig(2, 0, BatchConfig.Order.COMPLETION, 0, true),
                DEFAULTS.runtime());
        Algorithm unmasked = Algorithm.defaults().with(a -> a.masks());
        try (TopologyHarness topology = new TopologyHarness(recording, unmasked, directory)) {
            topology.pipe(version(4));
            for (int sample = 0; sample < 2; sample++) {
                Rollout rollout = rollout("g", sample).setReward(sample).build();
                topology.pipe(score(rollout, topology.pipe(rollout), -0.5f, -0.5f, -0.1f)
                        .build());
            }

            LearnerBatch batch = topology.batches().get(0);
            assertThat(PackedFloats.toArray(batch.getEntries().get(0).getWeights()))
                    .containsExactly(
                            new float[] {1f, (float) Math.exp(0.5), 2f},
                            within(1e-6f)); // e^0, e^0.5, and e^1.4 truncated at 2
            assertThat(batch.getStages())
                    .filteredOn(stage -> stage.getStage().equals("token_tis"))
                    .singleElement()
                    .satisfies(stage -> {
                        assertThat(stage.getTokensSeen()).isEqualTo(6);
                        assertThat(stage.getTokensChanged()).isEqualTo(2);
                        assertThat(stage.getSequencesChanged()).isEqualTo(2);
                    });
        }
    }

    @Test
    void shouldKeepOneTaskPerPartitionAndOnePerPolicy() {
        String description = MillraceTopology.build(
                        DEFAULTS,
                        Algorithm.defaults(),
                        new RunContext(
                                Samples.RUN,
                                dev.millrace.schemas.run.EpochLineage.FIRST,
                                TOPICS,
                                new dev.millrace.schemas.registry.InMemorySchemaRegistry(),
                                () -> null,
                                1 << 20,
                                new dev.millrace.topology.task.TopologyMeters(
                                        new io.micrometer.core.instrument.simple.SimpleMeterRegistry())),
                        dev.millrace.log.deadletter.Quarantines.none())
                .describe()
                .toString();
        assertThat(description).contains("Sub-topology: 0", "Sub-topology: 1").doesNotContain("Sub-topology: 2");
    }
}
