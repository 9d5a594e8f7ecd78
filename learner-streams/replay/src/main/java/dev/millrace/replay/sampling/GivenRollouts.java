package dev.millrace.replay.sampling;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.LogCoordinates;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.StageReport;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.packed.PackedMask;
import dev.millrace.schemas.rollout.ComparedDistribution;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.stages.ImportanceWeighting;
import dev.millrace.stages.MemberLogProbs;
import dev.millrace.stages.RolloutCorrectionOptions;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/** Makes trajectories of rollouts and scores that never were on a log. Immutable. */
public final class GivenRollouts {
    private static final LogCoordinates NOWHERE = new LogCoordinates("none", 0, 0L);

    private final RunIdentity run;
    private final ImportanceWeighting weighting;

    public GivenRollouts(RunIdentity run, RolloutCorrectionOptions options) {
        this.run = run;
        this.weighting = new ImportanceWeighting(options);
    }

    /** One trajectory per rollout, in order; the current policy is the proximal one. */
    public List<Trajectory> make(ScoredRollouts scored, long currentVersion) {
        List<Trajectory> made = new ArrayList<>(scored.rollouts().size());
        for (int s = 0; s < scored.rollouts().size(); s++) {
            made.add(make(
                    scored.rollouts().get(s),
                    scored.of(scored.behavior(), s),
                    scored.of(scored.current(), s),
                    currentVersion));
        }
        return made;
    }

    private Trajectory make(Rollout rollout, float[] behavior, float[] proximal, long proximalVersion) {
        int tokens = behavior.length;
        float[] weights = new float[tokens];
        List<StageReport> stages = weighting.compute(
                new TokenBatch(new int[] {0, tokens}, PackedMask.toArray(rollout.getMask())),
                new MemberLogProbs(behavior, behavior, proximal),
                weights);
        return Trajectory.newBuilder()
                .setRunId(run.runId())
                .setEpoch(run.epoch())
                .setPolicyId(run.policyId())
                .setRolloutId(rollout.getRolloutId())
                .setGroupId(rollout.getGroupId())
                .setOrdinal(rollout.getOrdinal())
                .setSampleIndex(rollout.getSampleIndex())
                .setGroupSize(rollout.getGroupSize())
                .setRolloutSource(NOWHERE)
                .setScoreSource(NOWHERE)
                .setPromptTokens(rollout.getPromptTokens())
                .setResponseTokens(rollout.getResponseTokens())
                .setMask(rollout.getMask())
                .setTemperature(rollout.getSampling().getTemperature())
                .setVersionSpans(rollout.getVersionSpans())
                .setBehaviorLogProbs(ComparedDistribution.behaviorLogProbs(rollout))
                .setOldLogProbs(ComparedDistribution.behaviorLogProbs(rollout))
                .setKeptTokens(ComparedDistribution.keptTokens(rollout))
                .setProximalLogProbs(PackedFloats.of(proximal))
                .setProximalVersion(proximalVersion)
                .setImportanceWeights(PackedFloats.of(weights))
                .setStages(stages)
                .setReward(rollout.getReward())
                .setFinishReason(rollout.getFinishReason().name())
                .setFinishedAtMs(rollout.getFinishedAtMs())
                .setScoredAtMs(rollout.getFinishedAtMs())
                .setCredit(rollout.getCredit())
                .setTurns(rollout.getCredit() == null ? null : rollout.getTurns())
                .setTaskKey(rollout.getTask() == null ? null : rollout.getTask().getKey())
                .build();
    }

    /** Tokens of a batch that are trained on with a weight above 0. */
    public static long weighed(List<Trajectory> trajectories, LearnerBatch batch) {
        long weighed = 0;
        for (int s = 0; s < trajectories.size(); s++) {
            ByteBuffer left = batch.getEntries().get(s).getMask();
            ByteBuffer mask = left == null ? trajectories.get(s).getMask() : left;
            for (int t = 0; t < PackedMask.length(mask); t++) {
                weighed += PackedMask.get(mask, t) == 1
                                && PackedFloats.get(trajectories.get(s).getImportanceWeights(), t) > 0
                        ? 1
                        : 0;
            }
        }
        return weighed;
    }
}
