package dev.millrace.cli.correct;

import dev.millrace.corrections.stage.StageInput;
import dev.millrace.schemas.Credit;
import dev.millrace.schemas.LogCoordinates;
import dev.millrace.schemas.Speaker;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.Turn;
import dev.millrace.schemas.VersionSpan;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.schemas.packed.PackedMask;
import dev.millrace.schemas.run.RunIdentity;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * A validated line.
 *
 * @param step start version of the step
 * @param hasVersions whether the line has them, instead of being derived from the step
 * @param advantages one per token; null if the line has none
 */
record RecordLine(
        FactsLine facts,
        long step,
        long[] versions,
        boolean hasVersions,
        Sampled sampled,
        double @Nullable [] advantages) {

    /**
     * Sampled tokens.
     *
     * @param promptTokens ids; empty if the line has none
     * @param responseTokens ids; empty if the line has none
     * @param finishReason a word; empty if the line has none
     */
    record Sampled(int[] promptTokens, int[] responseTokens, double temperature, String finishReason) {}

    /** Group of the samples of one prompt; its own if the line has none. */
    String group() {
        return facts.group().isEmpty() ? facts.id() : facts.group();
    }

    /** Its optional inputs. */
    Set<StageInput> known() {
        Set<StageInput> known = EnumSet.noneOf(StageInput.class);
        if (hasVersions) {
            known.add(StageInput.VERSIONS);
        }
        if (facts.values().numbers().containsKey(StageInput.AGES)) {
            known.add(StageInput.AGES);
        }
        return known;
    }

    /** Age at its batch; 0 if the line has none. */
    long ageMs() {
        return Math.round(facts.values().numbers().getOrDefault(StageInput.AGES, 0.0));
    }

    /** The record. */
    Trajectory trajectory(
            RunIdentity run, LogCoordinates source, long ordinal, int index, int groupSize, long finishedAtMs) {
        List<Turn> turns = turns();
        ByteBuffer reference = floats(StageInput.REFERENCE);
        ByteBuffer old = floats(StageInput.OLD);
        return Trajectory.newBuilder()
                .setRunId(run.runId())
                .setEpoch(run.epoch())
                .setPolicyId(run.policyId())
                .setRolloutId(facts.id())
                .setGroupId(group())
                .setOrdinal(ordinal)
                .setSampleIndex(index)
                .setGroupSize(groupSize)
                .setRolloutSource(source)
                .setScoreSource(source)
                .setPromptTokens(PackedInts.of(sampled.promptTokens()))
                .setResponseTokens(PackedInts.of(sampled.responseTokens()))
                .setMask(PackedMask.of(facts.mask()))
                .setTemperature(sampled.temperature())
                .setVersionSpans(spans())
                .setBehaviorLogProbs(Objects.requireNonNull(floats(StageInput.BEHAVIOR)))
                .setOldLogProbs(old)
                .setProximalLogProbs(Objects.requireNonNull(floats(StageInput.PROXIMAL)))
                .setProximalVersion(step)
                .setReward(facts.reward())
                .setFinishReason(sampled.finishReason().isEmpty() ? "UNKNOWN" : sampled.finishReason())
                .setFinishedAtMs(finishedAtMs)
                .setScoredAtMs(finishedAtMs)
                .setReferenceLogProbs(reference)
                .setTeacherLogProbs(floats(StageInput.TEACHER))
                .setRewardComponents(
                        facts.values().components() == null
                                ? Map.of()
                                : facts.values().components())
                .setCredit(credit(turns))
                .setTurns(turns)
                .setProximalEntropies(floats(StageInput.ENTROPIES))
                .setProximalSumSquaredProbs(floats(StageInput.SQUARED_PROBABILITIES))
                .build();
    }

    private @Nullable ByteBuffer floats(StageInput input) {
        float[] values = facts.values().vectors().get(input);
        return values == null ? null : PackedFloats.of(values);
    }

    private List<VersionSpan> spans() {
        List<VersionSpan> spans = new ArrayList<>();
        for (int start = 0, end; start < versions.length; start = end) {
            end = endOfRun(versions, start);
            spans.add(new VersionSpan(versions[start], start, end));
        }
        return spans;
    }

    private static int endOfRun(long[] values, int start) {
        int end = start + 1;
        while (end < values.length && values[end] == values[start]) {
            end++;
        }
        return end;
    }

    /** Null without turns. */
    private @Nullable List<Turn> turns() {
        long[] turnOf = facts.values().integers().get(StageInput.TURNS);
        if (turnOf == null) {
            return null;
        }
        List<Turn> turns = new ArrayList<>();
        for (int start = 0, end; start < turnOf.length; start = end) {
            end = endOfRun(turnOf, start);
            turns.add(new Turn(turnOf[start] < 0 ? Speaker.ENVIRONMENT : Speaker.POLICY, start, end, null));
        }
        return turns;
    }

    private @Nullable Credit credit(@Nullable List<Turn> turns) {
        ByteBuffer tokenRewards = floats(StageInput.TOKEN_REWARDS);
        ByteBuffer values = floats(StageInput.VALUES);
        Double greedy = facts.values().numbers().get(StageInput.GREEDY_REWARDS);
        ByteBuffer turnRewards = turnRewards(turns);
        return tokenRewards == null && values == null && greedy == null && turnRewards == null
                ? null
                : Credit.newBuilder()
                        .setTokenLevelRewards(tokenRewards)
                        .setTokenLevelValues(values)
                        .setTurnLevelRewards(turnRewards)
                        .setGreedyReward(greedy)
                        .build();
    }

    /** Rewards of the policy's turns in order, with 0 for the turns between. */
    private @Nullable ByteBuffer turnRewards(@Nullable List<Turn> turns) {
        List<Double> rewards = facts.values().turnRewards();
        if (rewards == null || turns == null) {
            return null;
        }
        float[] perTurn = new float[turns.size()];
        int next = 0;
        for (int turn = 0; turn < perTurn.length; turn++) {
            if (turns.get(turn).getSpeaker() == Speaker.POLICY && next < rewards.size()) {
                perTurn[turn] = rewards.get(next++).floatValue();
            }
        }
        return PackedFloats.of(perTurn);
    }
}
