package dev.millrace.stages;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.stage.StageFacts;
import dev.millrace.corrections.stage.StageInput;
import dev.millrace.schemas.Credit;
import dev.millrace.schemas.LogCoordinates;
import dev.millrace.schemas.Speaker;
import dev.millrace.schemas.TopLogProbs;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.Turn;
import dev.millrace.schemas.VersionSpan;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.schemas.packed.PackedMask;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;

class TrajectoryNotesTest {
    private static final LogCoordinates NOWHERE = new LogCoordinates("none", 0, 0L);
    private static final Set<StageInput> EVERYTHING = EnumSet.allOf(StageInput.class);
    private static final TokenBatch TWO = new TokenBatch(new int[] {0, 5, 7}, new byte[] {1, 1, 0, 1, 1, 1, 1});

    /** Five tokens in three turns: two of the policy, one of the environment, two of the policy. */
    private static Trajectory.Builder multiTurn() {
        return trajectory((byte) 1, (byte) 1, (byte) 0, (byte) 1, (byte) 1)
                .setTurns(List.of(
                        new Turn(Speaker.POLICY, 0, 2, null),
                        new Turn(Speaker.ENVIRONMENT, 2, 3, null),
                        new Turn(Speaker.POLICY, 3, 5, null)))
                .setCredit(Credit.newBuilder()
                        .setTurnLevelRewards(PackedFloats.of(0.5f, 0.25f, 2f))
                        .setTokenLevelRewards(PackedFloats.of(0f, 1f, 0f, 0f, 3f))
                        .setTokenLevelValues(PackedFloats.of(0.25f, 0.5f, 0f, 0.75f, 1f))
                        .setGreedyReward(0.5)
                        .build())
                .setReferenceLogProbs(PackedFloats.of(-1f, -2f, 0f, -3f, -4f))
                .setProximalEntropies(PackedFloats.of(1f, 2f, 0f, 3f, 4f))
                .setRewardComponents(Map.of("right", 2.0))
                .setTopLogProbs(top(2, 0.5, 0.25, 0.5, 0.25, 0.5, 0.25, 0.75, 0.125))
                .setProximalTopLogProbs(top(2, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25));
    }

    private static Trajectory.Builder oneTurn() {
        return trajectory((byte) 1, (byte) 1)
                .setTurns(List.of(new Turn(Speaker.POLICY, 0, 2, null)))
                .setCredit(Credit.newBuilder()
                        .setTurnLevelRewards(PackedFloats.of(7f))
                        .setTokenLevelRewards(PackedFloats.of(0f, 7f))
                        .setTokenLevelValues(PackedFloats.of(2f, 3f))
                        .setGreedyReward(-1.5)
                        .build())
                .setReferenceLogProbs(PackedFloats.of(-5f, -6f))
                .setRewardComponents(Map.of("right", 1.0))
                .setTopLogProbs(top(1, 0.5, 0.5))
                .setProximalTopLogProbs(top(1, 0.25, 0.5));
    }

    @Test
    void shouldTellTheStagesWhatAllMembersHave() {
        StageFacts facts = facts(EVERYTHING, multiTurn().build(), oneTurn().build());

        assertThat(facts.turns()).containsExactly(0, 0, -1, 1, 1, 0, 0);
        assertThat(facts.turnRewards()[0]) // a reward on the environment's turn belongs to the policy's turn before it
                .containsExactly(0.75, 2);
        assertThat(facts.turnRewards()[1]).containsExactly(7);
        assertThat(facts.vector(StageInput.TOKEN_REWARDS)).containsExactly(0, 1, 0, 0, 3, 0, 7);
        assertThat(facts.vector(StageInput.REFERENCE)).containsExactly(-1, -2, 0, -3, -4, -5, -6);
        assertThat(facts.rewardComponents()).containsExactly(Map.of("right", 2.0), Map.of("right", 1.0));
        assertThat(facts.has(StageInput.ENTROPIES)).as("the second has none").isFalse();
        assertThat(facts.has(StageInput.TEACHER)).isFalse();
        assertThat(facts.vector(StageInput.VALUES)).containsExactly(0.25f, 0.5f, 0, 0.75f, 1, 2, 3);
        assertThat(facts.greedyRewards()).containsExactly(0.5, -1.5);
    }

    @Test
    void shouldReadTheValuesOfThePolicysOwnCritic() {
        Trajectory.Builder own = multiTurn().setProximalValues(PackedFloats.of(0.5f, -1f, 9f, 0f, 4f));
        assertThat(facts(Set.of(StageInput.VALUES), own.build(), oneTurn().build())
                        .vector(StageInput.VALUES))
                .containsExactly(0.5f, -1, 9, 0, 4, 2, 3);
    }

    @Test
    void shouldSpreadDistributionsOverTokensWhateverTheirNumberOfEntries() {
        StageFacts facts = facts(
                Set.of(StageInput.DISTRIBUTIONS), multiTurn().build(), oneTurn().build());

        // 0.5 against 0.25, 0.25 against 0.25, and the rest, 0.25 against 0.5
        double first = 0.5 * Math.log(2) + 0.25 * Math.log(0.5);
        assertThat(facts.distributions().klAt(0)).isCloseTo(first, within(1e-6));
        double last = 0.75 * Math.log(3) + 0.125 * Math.log(0.5) + 0.125 * Math.log(0.25);
        assertThat(facts.distributions().klAt(4)).isCloseTo(last, within(1e-6));
        assertThat(facts.distributions().klAt(5))
                .isCloseTo(0.5 * Math.log(2) + 0.5 * Math.log(0.5 / 0.75), within(1e-6));
        assertThat(facts.distributions().klAt(6)).isCloseTo(0, within(1e-6));
    }

    @Test
    void shouldTakeNothingThatNobodyReads() {
        assertThat(TrajectoryNotes.of(multiTurn().build(), Set.of(StageInput.OLD, StageInput.VERSIONS)))
                .isSameAs(TrajectoryNotes.NONE);
        assertThat(TrajectoryNotes.NONE.bytes()).isZero();
        assertThat(TrajectoryNotes.NONE.missing()).isEmpty();
        assertThat(facts(
                                Set.of(StageInput.TURNS),
                                multiTurn().build(),
                                oneTurn().build())
                        .has(StageInput.TOKEN_REWARDS))
                .isFalse();
        assertThat(TrajectoryNotes.of(multiTurn().build(), Set.of(StageInput.TOKEN_REWARDS, StageInput.TURNS))
                        .bytes())
                .isEqualTo(2 * 5 * 4);
    }

    @Test
    void shouldNameWhatATrajectoryLacks() {
        Trajectory bare = trajectory((byte) 1).build();
        assertThat(TrajectoryNotes.of(bare, Set.of(StageInput.TURN_REWARDS, StageInput.OLD))
                        .missing())
                .contains(StageInput.TURN_REWARDS);
        assertThat(TrajectoryNotes.of(oneTurn().build(), Set.of(StageInput.TURN_REWARDS, StageInput.VALUES))
                        .missing())
                .isEmpty();
    }

    private static StageFacts facts(Set<StageInput> inputs, Trajectory... members) {
        return TrajectoryNotes.addTo(
                        StageFacts.of(TWO, new double[] {1, 2}),
                        TWO,
                        List.of(members).stream()
                                .map(member -> TrajectoryNotes.of(member, inputs))
                                .toList())
                .build();
    }

    /** Rows of probabilities; ids and the rest are as they may be. */
    private static TopLogProbs top(int k, double... probabilities) {
        float[] logProbs = new float[probabilities.length];
        for (int i = 0; i < logProbs.length; i++) {
            logProbs[i] = (float) Math.log(probabilities[i]);
        }
        int rows = probabilities.length / k;
        return new TopLogProbs(
                k,
                PackedInts.of(new int[probabilities.length]),
                PackedFloats.of(logProbs),
                PackedFloats.of(new float[rows]));
    }

    private static Trajectory.Builder trajectory(byte... mask) {
        float[] zeros = new float[mask.length];
        return Trajectory.newBuilder()
                .setRunId("run")
                .setEpoch(0)
                .setPolicyId("policy")
                .setRolloutId("g/0")
                .setGroupId("g")
                .setOrdinal(0)
                .setSampleIndex(0)
                .setGroupSize(2)
                .setRolloutSource(NOWHERE)
                .setScoreSource(NOWHERE)
                .setPromptTokens(PackedInts.of(1))
                .setResponseTokens(PackedInts.of(new int[mask.length]))
                .setMask(PackedMask.of(mask))
                .setTemperature(1)
                .setVersionSpans(List.of(new VersionSpan(0L, 0, mask.length)))
                .setBehaviorLogProbs(PackedFloats.of(zeros))
                .setOldLogProbs(null)
                .setProximalLogProbs(PackedFloats.of(zeros))
                .setProximalVersion(0)
                .setReward(1)
                .setFinishReason("STOP")
                .setFinishedAtMs(1)
                .setScoredAtMs(2);
    }
}
