package dev.millrace.topology.join;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.schemas.LogCoordinates;
import dev.millrace.schemas.LogProbVector;
import dev.millrace.schemas.PolicyRole;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.Score;
import dev.millrace.schemas.StageReport;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.packed.PackedMask;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.stages.ImportanceWeighting;
import dev.millrace.stages.PolicyLogProbs;
import dev.millrace.topology.ingress.RolloutArrival;
import dev.millrace.topology.ingress.ScoreArrival;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Map;

/**
 * Makes the trajectory of a rollout and its score, with everything that can be decided about it alone.
 *
 * <p>Behavior log-probs are taken before truncation where the rollout has both, because scores are not truncated
 * either: a ratio compares like with like. Vectors are views of the rollout's and the score's own bytes; only the
 * weights are new. Immutable and thread-safe.
 */
final class TrajectoryMaker {
    private final RunIdentity run;
    private final ImportanceWeighting weighting;

    TrajectoryMaker(RunIdentity run, ImportanceWeighting weighting) {
        this.run = run;
        this.weighting = weighting;
    }

    /**
     * @param rolloutAt where the rollout lies
     * @param scoreAt where the score lies
     * @param scored fits the rollout and has every vector
     */
    Trajectory make(RolloutArrival rolled, LogCoordinates rolloutAt, ScoreArrival scored, LogCoordinates scoreAt) {
        Rollout rollout = rolled.rollout();
        Score score = scored.score();
        LogProbVector old = vector(score, PolicyRole.OLD);
        LogProbVector proximal = vector(score, PolicyRole.PROXIMAL);
        ByteBuffer behavior =
            rollout.getTemperedLogProbs() == null ? rollout.getBehaviorLogProbs() : rollout.getTemperedLogProbs();
        int tokens = rollout.getMask().remaining();
        float[] weights = new float[tokens];
        List<StageReport> reports = weighting.compute(
            new TokenBatch(new int[] {0, tokens}, PackedMask.toArray(rollout.getMask())),
            new PolicyLogProbs(PackedFloats.toArray(behavior), PackedFloats.toArray(old.getLogProbs()),
                PackedFloats.toArray(proximal.getLogProbs())),
            weights);
        return new Trajectory(run.runId(), run.epoch(), run.policyId(), rollout.getRolloutId(), rollout.getGroupId(),
            rollout.getOrdinal(), rollout.getSampleIndex(), rollout.getGroupSize(), rolloutAt, scoreAt,
            rollout.getPromptTokens(), rollout.getResponseTokens(), rollout.getMask(), rollout.getSampling().getTemperature(),
            rollout.getVersionSpans(), behavior, old.getLogProbs(), proximal.getLogProbs(),
            proximal.getVersionSpans().get(0).getVersion(), PackedFloats.of(weights), reports, rollout.getReward(),
            rollout.getFinishReason().name(), rollout.getFinishedAtMs(), score.getScoredAtMs(),
            null, -1L, null, Map.of(), null, null, null);
    }

    private static LogProbVector vector(Score score, PolicyRole policy) {
        for (LogProbVector vector : score.getVectors()) {
            if (vector.getPolicy() == policy) {
                return vector;
            }
        }
        throw new IllegalStateException("an accepted score has the log-probs of " + policy);
    }
}
