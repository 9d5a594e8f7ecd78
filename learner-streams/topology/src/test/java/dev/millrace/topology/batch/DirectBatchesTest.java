package dev.millrace.topology.batch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.advantage.Credit;
import dev.millrace.corrections.advantage.Gae;
import dev.millrace.corrections.advantage.ReinforcePlusPlus;
import dev.millrace.corrections.advantage.Remax;
import dev.millrace.corrections.advantage.TokenPreservingGrpo;
import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.corrections.stage.StageBatch;
import dev.millrace.corrections.stage.StageFacts;
import dev.millrace.corrections.stage.StageInput;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.LogCoordinates;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.Speaker;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.Turn;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.registry.InMemorySchemaRegistry;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.topology.Samples;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.BeforeAll;
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

    @Test
    void shouldMakeAdvantagesOfTheRewardsOfTokensAndWriteOneForEach() {
        Algorithm algorithm =
                Algorithm.defaults().with(a -> a.advantage(new TokenPreservingGrpo(1, 0.5, Credit.TOKEN)));
        List<Trajectory> trajectories = List.of(
                rewarded(trajectory("g", 0, 1), 0f, 1f, 0f),
                rewarded(trajectory("g", 1, 0), 0f, 0f, 0.5f),
                rewarded(trajectory("h", 0, 1), 0.25f, 0.25f, 0.5f),
                rewarded(trajectory("h", 1, 1), 1f, 0f, 0f));
        LearnerBatch batch = new DirectBatches(Samples.RUN, algorithm).make(5, trajectories, 4);

        TokenBatch tokens = new TokenBatch(
                new int[] {0, 3, 6, 9, 12}, new byte[] {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, new int[] {0, 0, 1, 1});
        StageFacts facts = StageFacts.of(tokens, new double[] {1, 0, 1, 1})
                .vector(StageInput.TOKEN_REWARDS, new float[] {0, 1, 0, 0, 0, 0.5f, 0.25f, 0.25f, 0.5f, 1, 0, 0})
                .build();
        float[] expected = StageBatch.decide(facts, List.of(algorithm.advantage()))
                .tokenAdvantages()
                .orElseThrow();
        for (int s = 0; s < 4; s++) {
            BatchEntry entry = batch.getEntries().get(s);
            float[] own = PackedFloats.toArray(entry.getCredit().getTokenLevelAdvantages());
            assertThat(own).containsExactly(Arrays.copyOfRange(expected, 3 * s, 3 * s + 3));
            assertThat(entry.getAdvantage()).isCloseTo((own[0] + own[1] + own[2]) / 3, within(1e-6));
        }
        assertThat(expected[0]).isNotEqualTo(expected[1]);
    }

    @Test
    void shouldMakeAdvantagesOfTheRewardsOfTurns() {
        Algorithm algorithm = Algorithm.defaults().with(a -> a.advantage(new ReinforcePlusPlus(1, Credit.TURN)));
        List<Turn> turns = List.of(new Turn(Speaker.POLICY, 0, 1, null), new Turn(Speaker.POLICY, 1, 3, null));
        List<Trajectory> trajectories =
                List.of(turned(trajectory("g", 0, 1), turns, 0f, 1f), turned(trajectory("g", 1, 0), turns, 0.5f, 0f));
        LearnerBatch batch = new DirectBatches(Samples.RUN, algorithm).make(5, trajectories, 4);

        float[] first =
                PackedFloats.toArray(batch.getEntries().get(0).getCredit().getTokenLevelAdvantages());
        float[] second =
                PackedFloats.toArray(batch.getEntries().get(1).getCredit().getTokenLevelAdvantages());
        assertThat(first[0]).as("both of its turns are still to come").isEqualTo(first[1]);
        assertThat(second[0]).as("its reward came with its first turn").isGreaterThan(second[1]);
        assertThat(second[1]).isEqualTo(second[2]);
    }

    @Test
    void shouldCompareWithTheGreedyAnswersRewardThatCameWithTheCredit() {
        Algorithm remax = Algorithm.defaults().with(a -> a.advantage(Remax.defaults()));
        LearnerBatch batch = new DirectBatches(Samples.RUN, remax)
                .make(5, List.of(compared(trajectory("g", 0, 1), 0.25), compared(trajectory("g", 1, 0), 0.5)), 4);

        assertThat(tokenAdvantages(batch, 0)).containsExactly(0.75f, 0.75f, 0.75f);
        assertThat(tokenAdvantages(batch, 1)).containsExactly(-0.5f, -0.5f, -0.5f);
    }

    @Test
    void shouldEstimateWithTheValuesThatCameWithTheCredit() {
        Algorithm gae = Algorithm.defaults().with(a -> a.advantage(new Gae(1, 0, Credit.OUTCOME)));
        LearnerBatch batch = new DirectBatches(Samples.RUN, gae)
                .make(
                        5,
                        List.of(valued(trajectory("g", 0, 1), 0f, 0.5f, 1f), valued(trajectory("g", 1, 0), 0, 0, 0)),
                        4);

        // one-step errors 0.5, 0.5, 0 and 0, 0, 0, whitened together
        float[] first = tokenAdvantages(batch, 0);
        float[] second = tokenAdvantages(batch, 1);
        assertThat(first[0]).isEqualTo(first[1]).isGreaterThan(0);
        assertThat(first[2]).isEqualTo(second[0]).isEqualTo(second[2]).isLessThan(0);
        assertThat(first[0] / -first[2]).isCloseTo(2, within(1e-5f));
    }

    private static float[] tokenAdvantages(LearnerBatch batch, int entry) {
        return PackedFloats.toArray(batch.getEntries().get(entry).getCredit().getTokenLevelAdvantages());
    }

    private static Trajectory compared(Trajectory trajectory, double greedy) {
        return Trajectory.newBuilder(trajectory)
                .setCredit(dev.millrace.schemas.Credit.newBuilder()
                        .setGreedyReward(greedy)
                        .build())
                .build();
    }

    private static Trajectory valued(Trajectory trajectory, float... values) {
        return Trajectory.newBuilder(trajectory)
                .setCredit(dev.millrace.schemas.Credit.newBuilder()
                        .setTokenLevelValues(PackedFloats.of(values))
                        .build())
                .build();
    }

    private static Trajectory rewarded(Trajectory trajectory, float... perToken) {
        return Trajectory.newBuilder(trajectory)
                .setCredit(dev.millrace.schemas.Credit.newBuilder()
                        .setTokenLevelRewards(PackedFloats.of(perToken))
                        .build())
                .build();
    }

    private static Trajectory turned(Trajectory trajectory, List<Turn> turns, float... perTurn) {
        return Trajectory.newBuilder(trajectory)
                .setTurns(turns)
                .setCredit(dev.millrace.schemas.Credit.newBuilder()
                        .setTurnLevelRewards(PackedFloats.of(perTurn))
                        .build())
                .build();
    }

    /** Loads the serde, which marks the record classes as trusted for copying builders. */
    @BeforeAll
    static void trustRecords() {
        AvroSerde.of(Trajectory.class, new InMemorySchemaRegistry());
    }
}
