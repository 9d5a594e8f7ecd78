package dev.millrace.learner;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.session.ScoringSession;
import dev.millrace.policy.session.SequenceBatch;
import dev.millrace.policy.weights.Weights;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.FinishReason;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.LogCoordinates;
import dev.millrace.schemas.LogProbDistribution;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.SamplingParameters;
import dev.millrace.schemas.Speaker;
import dev.millrace.schemas.StageReport;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.Turn;
import dev.millrace.schemas.VersionSpan;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.schemas.packed.PackedMask;
import dev.millrace.schemas.run.RunIdentity;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;

/**
 * Trajectories and batches of a small decoder, as the topology would write them: random tokens, log-probs of the initial
 * weights with a little noise for the behavior policy, rewards that prefer low tokens. The same seed gives the same.
 */
public final class SyntheticRollouts implements AutoCloseable {
    /** 552 parameters, and every kind of tensor. */
    public static final DecoderShape SHAPE = new DecoderShape(9, 8, 1, 2, 1, 4, 8, 24, 100, 1e-6, false, false);
    /** What the rollouts belong to. */
    public static final RunIdentity RUN = new RunIdentity("run-1", 0, "policy");
    /** Identity of the vocabulary. */
    public static final String TOKENIZER_HASH = "vocabulary";
    /** The initial weights' seed. */
    public static final long SEED = 5;

    /** Rollouts of a prompt. */
    public static final int GROUP_SIZE = 2;

    private final SplittableRandom random;
    private final ScoringSession session = new ScoringSession(Engine.cpu(), SHAPE, 1024);
    private final Weights weights = Weights.random(SHAPE, SEED);
    private int count;

    public SyntheticRollouts(long seed) {
        this.random = new SplittableRandom(seed);
    }

    /** Returns the next trajectory: a prompt of 2 to 4 tokens and a response of 2 to 6, some of them context. */
    public Trajectory next() {
        int promptTokens = random.nextInt(2, 5);
        int[] tokens = random.ints(promptTokens + random.nextInt(2, 7), 0, SHAPE.vocabSize())
                .toArray();
        int[] response = Arrays.copyOfRange(tokens, promptTokens, tokens.length);
        byte[] mask = new byte[response.length];
        for (int t = 0; t < mask.length; t++) {
            mask[t] = (byte) (t == 0 || random.nextInt(5) > 0 ? 1 : 0);
        }
        SequenceBatch sequence = new SequenceBatch(new int[][] {tokens}, new int[] {promptTokens});
        float[] old = session.score(weights, sequence, new float[] {1f}).logProbs();
        float[] behavior = new float[old.length];
        double reward = 0;
        for (int t = 0; t < old.length; t++) {
            behavior[t] = (float) (old[t] + 0.02 * (random.nextDouble() - 0.5));
            reward += response[t] < 4 ? 1.0 / old.length : 0;
        }
        int ordinal = count / GROUP_SIZE;
        int sample = count++ % GROUP_SIZE;
        LogCoordinates nowhere = new LogCoordinates("synthetic", 0, (long) ordinal);
        return Trajectory.newBuilder()
                .setRunId(RUN.runId())
                .setEpoch(RUN.epoch())
                .setPolicyId(RUN.policyId())
                .setRolloutId("g" + ordinal + "/" + sample)
                .setGroupId("g" + ordinal)
                .setOrdinal(ordinal)
                .setSampleIndex(sample)
                .setGroupSize(GROUP_SIZE)
                .setRolloutSource(nowhere)
                .setScoreSource(nowhere)
                .setPromptTokens(PackedInts.of(Arrays.copyOf(tokens, promptTokens)))
                .setResponseTokens(PackedInts.of(response))
                .setMask(PackedMask.of(mask))
                .setTemperature(1)
                .setVersionSpans(List.of(new VersionSpan(0L, 0, response.length)))
                .setBehaviorLogProbs(PackedFloats.of(behavior))
                .setOldLogProbs(PackedFloats.of(old))
                .setProximalLogProbs(PackedFloats.of(old))
                .setProximalVersion(0)
                .setReward(reward)
                .setFinishReason("STOP")
                .setFinishedAtMs(1)
                .setScoredAtMs(2)
                .build();
    }

    /** What a generator would have written of it. */
    public static Rollout rollout(Trajectory trajectory) {
        int tokens = PackedMask.length(trajectory.getMask());
        return Rollout.newBuilder()
                .setRunId(RUN.runId())
                .setEpoch(RUN.epoch())
                .setRolloutId(trajectory.getRolloutId())
                .setGroupId(trajectory.getGroupId())
                .setOrdinal(trajectory.getOrdinal())
                .setSampleIndex(trajectory.getSampleIndex())
                .setGroupSize(trajectory.getGroupSize())
                .setGeneratorId("generator-0")
                .setEnvironment("synthetic")
                .setTokenizerHash(TOKENIZER_HASH)
                .setPromptTokens(trajectory.getPromptTokens())
                .setResponseTokens(trajectory.getResponseTokens())
                .setMask(trajectory.getMask())
                .setBehaviorLogProbs(trajectory.getBehaviorLogProbs())
                .setLogProbDistribution(LogProbDistribution.TEMPERED)
                .setSampling(new SamplingParameters(1.0, 0, 1.0, tokens, 1L, false, 0, 0.0, false))
                .setTurns(List.of(new Turn(Speaker.POLICY, 0, tokens, null)))
                .setVersionSpans(trajectory.getVersionSpans())
                .setReward(trajectory.getReward())
                .setFinishReason(FinishReason.STOP)
                .setAdmittedVersion(0)
                .setStartedAtMs(0)
                .setFinishedAtMs(trajectory.getFinishedAtMs())
                .build();
    }

    /** An entry that points at a trajectory and keeps its own mask; the advantage is the reward less one half. */
    public static BatchEntry entry(Trajectory trajectory, int partition, long offset) {
        return BatchEntry.newBuilder()
                .setRolloutId(trajectory.getRolloutId())
                .setGroupId(trajectory.getGroupId())
                .setPartition(partition)
                .setOffset(offset)
                .setRolloutPartition(trajectory.getRolloutSource().getPartition())
                .setRolloutOffset(trajectory.getRolloutSource().getOffset())
                .setReward(trajectory.getReward())
                .setAdvantage(trajectory.getReward() - 0.5)
                .setOldestVersion(0)
                .setTrainedTokens(PackedMask.count(trajectory.getMask()))
                .build();
    }

    /** The same entry with every token masked, as a stage of the batch leaves it. */
    public static BatchEntry masked(Trajectory trajectory, int partition, long offset) {
        return BatchEntry.newBuilder()
                .setRolloutId(trajectory.getRolloutId())
                .setGroupId(trajectory.getGroupId())
                .setPartition(partition)
                .setOffset(offset)
                .setRolloutPartition(trajectory.getRolloutSource().getPartition())
                .setRolloutOffset(trajectory.getRolloutSource().getOffset())
                .setReward(trajectory.getReward())
                .setAdvantage(trajectory.getReward() - 0.5)
                .setOldestVersion(0)
                .setTrainedTokens(0)
                .setMask(PackedMask.of(new byte[PackedMask.length(trajectory.getMask())]))
                .setMaskedBy("m2po")
                .build();
    }

    /** A batch of entries with a step scale that differs from batch to batch. */
    public static LearnerBatch batch(long batchId, List<BatchEntry> entries) {
        long trained = entries.stream().mapToLong(BatchEntry::getTrainedTokens).sum();
        return LearnerBatch.newBuilder()
                .setRunId(RUN.runId())
                .setEpoch(RUN.epoch())
                .setPolicyId(RUN.policyId())
                .setBatchId(batchId)
                .setAssembledVersion(0)
                .setEntries(new ArrayList<>(entries))
                .setStages(List.of(
                        new StageReport("m2po", trained, 3L, (long) entries.size(), 1L, Map.of("threshold", 0.04))))
                .setTrainedTokens(trained)
                .setEssRatio(0.9)
                .setEssRatioTruncated(0.95)
                .setSecondMoment(0.01)
                .setStepScale(1 - 0.1 * (batchId % 3))
                .setStalenessMean(0.5)
                .setStalenessMax(1)
                .setAssembledAtMs(3)
                .build();
    }

    @Override
    public void close() {
        session.close();
    }
}
