package dev.millrace.topology.join;

import dev.millrace.corrections.stage.StageInput;
import dev.millrace.schemas.Credit;
import dev.millrace.schemas.LogCoordinates;
import dev.millrace.schemas.PolicyRole;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.rollout.ComparedDistribution;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.topology.ingress.Arrival;
import dev.millrace.topology.ingress.RewardArrival;
import dev.millrace.topology.join.PendingJoin.Scored;
import java.nio.ByteBuffer;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.Function;

/**
 * Makes the trajectory of a rollout and its partners.
 *
 * <p>Behavior log-probs are those that scores can be compared with: over the kept tokens where the rollout's sampling keeps
 * its mask, which then goes along, else before truncation. Vectors are views of the records' own bytes. Immutable and thread-safe.
 */
final class TrajectoryMaker {
    private final RunIdentity run;
    private final Set<StageInput> inputs;

    /** @param inputs that the algorithm reads: what only the rollout has is carried for these */
    TrajectoryMaker(RunIdentity run, Set<StageInput> inputs) {
        this.run = run;
        this.inputs = inputs;
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
                reward.map(r -> r.reward().getReward()).orElse(rollout.getReward()),
                rollout.getFinishReason().name(),
                rollout.getFinishedAtMs(),
                proximal.by().score().getScoredAtMs(),
                reference.map(r -> r.vector().getLogProbs()).orElse(null),
                reference.map(TrajectoryMaker::versionOf).orElse(-1L),
                teacher.map(t -> t.vector().getLogProbs()).orElse(null),
                reward.map(r -> r.reward().getRewardComponents())
                        .orElse(
                                inputs.contains(StageInput.REWARD_COMPONENTS)
                                        ? rollout.getRewardComponents()
                                        : Map.of()),
                reward.map(at).orElse(null),
                reference.map(Scored::by).map(at).orElse(null),
                teacher.map(Scored::by).map(at).orElse(null),
                credit,
                credit != null || inputs.contains(StageInput.TURNS) ? rollout.getTurns() : null,
                rollout.getTask() == null ? null : rollout.getTask().getKey(),
                ComparedDistribution.keptTokens(rollout),
                rollout.getSamplingTrace() == null
                        ? null
                        : rollout.getSamplingTrace().getTopLogProbs(),
                proximal.vector().getEntropies(),
                proximal.vector().getSumSquaredProbs(),
                proximal.vector().getTopLogProbs(),
                ComparedDistribution.routing(rollout));
    }

    private static long versionOf(Scored scored) {
        return scored.vector().getVersionSpans().get(0).getVersion();
    }
}
