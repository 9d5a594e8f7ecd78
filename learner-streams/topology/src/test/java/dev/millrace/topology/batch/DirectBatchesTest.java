package dev.millrace.topology.batch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.LogCoordinates;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.Trajectory;
import dev.millrace.topology.Samples;
import java.util.List;
import org.junit.jupiter.api.Test;

class DirectBatchesTest {
    private static final LogCoordinates NOWHERE = new LogCoordinates("none", 0, 0L);

    /** Three tokens by version 3; proximal as behavior. */
    private static Trajectory trajectory(String group, int sample, double reward) {
        Rollout rollout = Samples.rollout(group, sample).build();
        return Trajectory.newBuilder()
                .setRunId(rollout.getRunId())
                .setEpoch(rollout.getEpoch())
                .setPolicyId("policy")
                .setRolloutId(rollout.getRolloutId())
                .setGroupId(group)
                .setOrdinal(rollout.getOrdinal())
                .setSampleIndex(sample)
                .setGroupSize(rollout.getGroupSize())
                .setRolloutSource(NOWHERE)
                .setScoreSource(NOWHERE)
                .setPromptTokens(rollout.getPromptTokens())
                .setResponseTokens(rollout.getResponseTokens())
                .setMask(rollout.getMask())
                .setTemperature(1)
                .setVersionSpans(rollout.getVersionSpans())
                .setBehaviorLogProbs(rollout.getBehaviorLogProbs())
                .setOldLogProbs(rollout.getBehaviorLogProbs())
                .setProximalLogProbs(rollout.getBehaviorLogProbs())
                .setProximalVersion(4)
                .setReward(reward)
                .setFinishReason("STOP")
                .setFinishedAtMs(1000)
                .setScoredAtMs(1200)
                .build();
    }

    @Test
    void shouldDecideAboutWholeGroupsInTheOrderTheyAreGivenIn() {
        LearnerBatch batch = new DirectBatches(Samples.RUN, Algorithm.defaults())
                .make(
                        5,
                        List.of(
                                trajectory("b", 0, 1),
                                trajectory("b", 1, 0),
                                trajectory("a", 0, 0.5),
                                trajectory("a", 1, 0.25)),
                        4);

        assertThat(batch.getBatchId()).isEqualTo(5);
        assertThat(batch.getAssembledVersion()).isEqualTo(4);
        assertThat(batch.getEntries()).extracting(BatchEntry::getRolloutId).containsExactly("b/0", "b/1", "a/0", "a/1");
        assertThat(batch.getEntries()).extracting(BatchEntry::getOffset).containsExactly(0L, 1L, 2L, 3L);
        assertThat(batch.getEntries()).extracting(BatchEntry::getAdvantage).containsExactly(0.5, -0.5, 0.125, -0.125);
        assertThat(batch.getTrainedTokens()).isEqualTo(12);
        assertThat(batch.getStalenessMean()).isEqualTo(1);
        assertThat(batch.getEssRatio()).isCloseTo(1, within(1e-12));
    }
}
