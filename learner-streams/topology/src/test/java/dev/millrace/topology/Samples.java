package dev.millrace.topology;

import dev.millrace.schemas.FinishReason;
import dev.millrace.schemas.LogCoordinates;
import dev.millrace.schemas.LogProbDistribution;
import dev.millrace.schemas.LogProbVector;
import dev.millrace.schemas.PolicyRole;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.Reward;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.SamplingParameters;
import dev.millrace.schemas.Score;
import dev.millrace.schemas.Speaker;
import dev.millrace.schemas.TensorLocation;
import dev.millrace.schemas.TrainingStep;
import dev.millrace.schemas.Turn;
import dev.millrace.schemas.VersionSpan;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.schemas.packed.PackedMask;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

/** Well-formed records to start from; a test changes what it is about. */
public final class Samples {
    public static final RunIdentity RUN = new RunIdentity("run-1", 2, "policy");
    public static final RunTopics TOPICS = new RunTopics("test.");

    private Samples() {}

    /** Three policy tokens by version 3, reward 1, in a group of two. */
    public static Rollout.Builder rollout(String groupId, int sample) {
        return Rollout.newBuilder()
                .setRunId(RUN.runId())
                .setEpoch(RUN.epoch())
                .setRolloutId(groupId + "/" + sample)
                .setGroupId(groupId)
                .setOrdinal(7)
                .setSampleIndex(sample)
                .setGroupSize(2)
                .setGeneratorId("generator-0")
                .setEnvironment("inc")
                .setTokenizerHash("vocabulary")
                .setPromptTokens(PackedInts.of(1, 2))
                .setResponseTokens(PackedInts.of(3, 4, 5))
                .setMask(PackedMask.of((byte) 1, (byte) 1, (byte) 1))
                .setBehaviorLogProbs(PackedFloats.of(-0.5f, -1f, -1.5f))
                .setLogProbDistribution(LogProbDistribution.TEMPERED)
                .setTemperedLogProbs(null)
                .setSampling(new SamplingParameters(1.0, 0, 1.0, 8, 42L, false, 0, 0.0, false))
                .setTurns(List.of(new Turn(Speaker.POLICY, 0, 3, null)))
                .setVersionSpans(List.of(new VersionSpan(3L, 0, 3)))
                .setReward(1.0)
                .setRewardComponents(Map.of())
                .setFinishReason(FinishReason.STOP)
                .setAdmittedVersion(3)
                .setStartedAtMs(1000)
                .setFinishedAtMs(1100);
    }

    /**
     * The same with a number of tokens that all have one log-prob, sampled by one version, in a group of a given size.
     */
    public static Rollout.Builder rollout(
            String groupId, int sample, int groupSize, int tokens, float logProb, long version) {
        int[] ids = new int[tokens];
        Arrays.setAll(ids, i -> i % 11);
        byte[] mask = new byte[tokens];
        Arrays.fill(mask, (byte) 1);
        return rollout(groupId, sample)
                .setGroupSize(groupSize)
                .setResponseTokens(PackedInts.of(ids))
                .setMask(PackedMask.of(mask))
                .setBehaviorLogProbs(PackedFloats.of(filled(tokens, logProb)))
                .setSampling(new SamplingParameters(1.0, 0, 1.0, Math.max(8, tokens), 42L, false, 0, 0.0, false))
                .setTurns(List.of(new Turn(Speaker.POLICY, 0, tokens, null)))
                .setVersionSpans(List.of(new VersionSpan(version, 0, tokens)));
    }

    /** Scores a rollout at {@code offset} of partition 0: old as behavior, proximal at version 4 with these log-probs. */
    public static Score.Builder score(Rollout rollout, long offset, float... proximal) {
        int tokens = proximal.length;
        return Score.newBuilder()
                .setRunId(RUN.runId())
                .setEpoch(RUN.epoch())
                .setRolloutId(rollout.getRolloutId())
                .setGroupId(rollout.getGroupId())
                .setScorerId("scorer-0")
                .setRolloutSource(new LogCoordinates(TOPICS.rollouts(), 0, offset))
                .setVectors(List.of(
                        new LogProbVector(
                                PolicyRole.OLD,
                                rollout.getVersionSpans(),
                                rollout.getBehaviorLogProbs(),
                                null,
                                null,
                                null,
                                null),
                        new LogProbVector(
                                PolicyRole.PROXIMAL,
                                List.of(new VersionSpan(4L, 0, tokens)),
                                PackedFloats.of(proximal),
                                null,
                                null,
                                null,
                                null)))
                .setUnavailable(null)
                .setScoredAtMs(1200);
    }

    /** Scores a rollout with proximal equal to behavior. */
    public static Score.Builder score(Rollout rollout, long offset) {
        return score(rollout, offset, PackedFloats.toArray(rollout.getBehaviorLogProbs()));
    }

    /** A reward of 0.25 for a rollout at {@code offset} of partition 0. */
    public static Reward.Builder reward(Rollout rollout, long offset) {
        return Reward.newBuilder()
                .setRunId(RUN.runId())
                .setEpoch(RUN.epoch())
                .setRolloutId(rollout.getRolloutId())
                .setGroupId(rollout.getGroupId())
                .setRewarderId("judge-0")
                .setRolloutSource(new LogCoordinates(TOPICS.rollouts(), 0, offset))
                .setReward(0.25)
                .setRewardComponents(Map.of("judge", 0.25))
                .setUnavailable(null)
                .setScoredAtMs(1300);
    }

    /** Score of a rollout by version 0 as reference, or by a teacher outside the run. */
    public static Score.Builder scoreBy(PolicyRole role, Rollout rollout, long offset) {
        int tokens = rollout.getMask().remaining();
        long version = role == PolicyRole.TEACHER ? -1 : 0;
        return score(rollout, offset)
                .setVectors(List.of(new LogProbVector(
                        role,
                        List.of(new VersionSpan(version, 0, tokens)),
                        PackedFloats.of(filled(tokens, role == PolicyRole.TEACHER ? -0.25f : -2f)),
                        null,
                        null,
                        null,
                        null)));
    }

    /** A version that is made from batch {@code version - 1}. */
    public static PolicyVersion version(long version) {
        return version(version, -1);
    }

    public static PolicyVersion version(long version, long batchId) {
        return new PolicyVersion(
                RUN.runId(),
                RUN.epoch(),
                RUN.policyId(),
                version,
                version - 1,
                batchId,
                "{}",
                "vocabulary",
                new TensorLocation(TOPICS.weights(), 0, 0L, 0L, List.of(), "00", null, null, null, null),
                null,
                version,
                0L,
                0L,
                1000L,
                Map.of(),
                null,
                null);
    }

    /** Training-log record of a starved batch. */
    public static TrainingStep starved(long batchId, long version) {
        return TrainingStep.newBuilder()
                .setRunId(RUN.runId())
                .setEpoch(RUN.epoch())
                .setPolicyId(RUN.policyId())
                .setBatchId(batchId)
                .setVersion(version)
                .setWeightsSha256("00")
                .setRolloutsTrained(0)
                .setRolloutsMasked(2)
                .setTokensTrained(0)
                .setRewardMean(0)
                .setStalenessMean(null)
                .setStalenessMax(null)
                .setEssRatio(null)
                .setLearningRate(0)
                .setMetrics(Map.of())
                .setStarved(true)
                .setStartedAtMs(1000)
                .setFinishedAtMs(1000)
                .build();
    }

    public static float[] filled(int length, float value) {
        float[] values = new float[length];
        Arrays.fill(values, value);
        return values;
    }
}
