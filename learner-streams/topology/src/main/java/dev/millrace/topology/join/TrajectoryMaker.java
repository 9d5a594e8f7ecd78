package dev.millrace.topology.join;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.schemas.Credit;
import dev.millrace.schemas.LogCoordinates;
import dev.millrace.schemas.PolicyRole;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.StageReport;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.packed.PackedMask;
import dev.millrace.schemas.rollout.ComparedDistribution;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.stages.ImportanceWeighting;
import dev.millrace.stages.MemberLogProbs;
import dev.millrace.stages.MissingOldLogProbs;
import dev.millrace.topology.ingress.Arrival;
import dev.millrace.topology.ingress.RewardArrival;
import dev.millrace.topology.join.PendingJoin.Scored;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;

/**
 * Makes the trajectory of a rollout and its partners, with everything that can be decided about it alone.
 *
 * <p>Behavior log-probs are those that scores can be compared with: over the kept tokens where the rollout's sampling keeps
 * its mask, which then goes along, else before truncation. Vectors are views of the records' own bytes; only the
 * weights are new. Immutable and thread-safe.
 */
final class TrajectoryMaker {
    private final RunIdentity run;
    private final ImportanceWeighting weighting;
    private final MissingOldLogProbs missingOld;
    private final boolean recordWeights;

    TrajectoryMaker(
            RunIdentity run, ImportanceWeighting weighting, MissingOldLogProbs missingOld, boolean recordWeights) {
        this.run = run;
        this.weighting = weighting;
        this.missingOld = missingOld;
        this.recordWeights = recordWeights;
    }

    /**
     * @param meeting of partners that fit the rollout and have what they were asked for; a score is among them, which may lack
     *     old log-probs where the run goes on without
     * @param at where a record of the meeting lies
     */
    Trajectory make(PendingJoin meeting, Function<Arrival, LogCoordinates> at) {
        Rollout rollout = meeting.rollout().rollout();
        ByteBuffer old = meeting.scored(PolicyRole.OLD)
                .map(scored -> scored.vector().getLogProbs())
                .orElse(null);
        Scored proximal = meeting.scored(PolicyRole.PROXIMAL).orElseThrow();
        Optional<Scored> reference = meeting.scored(PolicyRole.REFERENCE);
        Optional<Scored> teacher = meeting.scored(PolicyRole.TEACHER);
        Optional<RewardArrival> reward = meeting.reward();
        ByteBuffer behavior = ComparedDistribution.behaviorLogProbs(rollout);
        Credit credit = reward.isPresent() ? reward.get().reward().getCredit() : rollout.getCredit();
        int tokens = rollout.getMask().remaining();
        float[] weights = new float[tokens];
        List<StageReport> reports = weighting.compute(
                missingOld.trainable(
                        new TokenBatch(new int[] {0, tokens}, PackedMask.toArray(rollout.getMask())),
                        new boolean[] {old == null}),
                new MemberLogProbs(
                        PackedFloats.toArray(behavior),
                        MemberLogProbs.known(old, tokens),
                        PackedFloats.toArray(proximal.vector().getLogProbs())),
                weights);
        return new Trajectory(
                run.runId(),
                run.epoch(),
                run.policyId(),
                rollout.getRolloutId(),
                rollout.getGroupId(),
                rollout.getOrdinal(),
                rollout.getSampleIndex(),
                rollout.getGroupSize(),
                at.apply(meeting.rollout()),
                at.apply(proximal.by()),
                rollout.getPromptTokens(),
                rollout.getResponseTokens(),
                rollout.getMask(),
                rollout.getSampling().getTemperature(),
                rollout.getVersionSpans(),
                behavior,
                old,
                proximal.vector().getLogProbs(),
                versionOf(proximal),
                recordWeights ? PackedFloats.of(weights) : null,
                reports,
                reward.map(r -> r.reward().getReward()).orElse(rollout.getReward()),
                rollout.getFinishReason().name(),
                rollout.getFinishedAtMs(),
                proximal.by().score().getScoredAtMs(),
                reference.map(r -> r.vector().getLogProbs()).orElse(null),
                reference.map(TrajectoryMaker::versionOf).orElse(-1L),
                teacher.map(t -> t.vector().getLogProbs()).orElse(null),
                reward.map(r -> r.reward().getRewardComponents()).orElse(Map.of()),
                reward.map(at).orElse(null),
                reference.map(Scored::by).map(at).orElse(null),
                teacher.map(Scored::by).map(at).orElse(null),
                credit,
                credit == null ? null : rollout.getTurns(),
                rollout.getTask() == null ? null : rollout.getTask().getKey(),
                ComparedDistribution.keptTokens(rollout),
                rollout.getSamplingTrace() == null
                        ? null
                        : rollout.getSamplingTrace().getTopLogProbs(),
                proximal.vector().getTopLogProbs());
    }

    private static long versionOf(Scored scored) {
        return scored.vector().getVersionSpans().get(0).getVersion();
    }
}
