package dev.millrace.replay;

import dev.millrace.schemas.LogCoordinates;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.rollout.ComparedDistribution;
import dev.millrace.schemas.run.RunIdentity;
import java.util.ArrayList;
import java.util.List;

/** Builds trajectories from rollouts and scores that were never on a log. Immutable. */
public final class GivenRollouts {
    private static final LogCoordinates NOWHERE = new LogCoordinates("none", 0, 0L);

    private final RunIdentity run;

    public GivenRollouts(RunIdentity run) {
        this.run = run;
    }

    /** In order; the current policy is the proximal one. */
    public List<Trajectory> make(ScoredRollouts scored, long currentVersion) {
        List<Trajectory> made = new ArrayList<>(scored.rollouts().size());
        for (int s = 0; s < scored.rollouts().size(); s++) {
            made.add(make(scored.rollouts().get(s), scored.of(scored.current(), s), currentVersion));
        }
        return made;
    }

    private Trajectory make(Rollout rollout, float[] proximal, long proximalVersion) {
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
                .setRouting(ComparedDistribution.routing(rollout))
                .setProximalLogProbs(PackedFloats.of(proximal))
                .setProximalVersion(proximalVersion)
                .setReward(rollout.getReward())
                .setFinishReason(rollout.getFinishReason().name())
                .setFinishedAtMs(rollout.getFinishedAtMs())
                .setScoredAtMs(rollout.getFinishedAtMs())
                .setCredit(rollout.getCredit())
                .setTurns(rollout.getCredit() == null ? null : rollout.getTurns())
                .setTaskKey(rollout.getTask() == null ? null : rollout.getTask().getKey())
                .build();
    }
}
