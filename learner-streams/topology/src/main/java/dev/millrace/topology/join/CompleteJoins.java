package dev.millrace.topology.join;

import dev.millrace.corrections.stage.StageInput;
import dev.millrace.schemas.Credit;
import dev.millrace.schemas.FinishReason;
import dev.millrace.schemas.LogCoordinates;
import dev.millrace.schemas.PolicyRole;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.rollout.ComparedDistribution;
import dev.millrace.schemas.rollout.Refusal;
import dev.millrace.schemas.rollout.RefusalReason;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.stages.TrajectoryNotes;
import dev.millrace.topology.ingress.Arrival;
import dev.millrace.topology.ingress.JoinSide;
import dev.millrace.topology.ingress.PartnerArrival;
import dev.millrace.topology.ingress.RewardArrival;
import dev.millrace.topology.join.PendingJoin.Scored;
import dev.millrace.topology.task.OutcomeReason;
import java.nio.ByteBuffer;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.Function;

/**
 * What becomes of a rollout whose partners are all there: a trajectory, unless one of them could not say what it was
 * asked, nothing was decided about it, or the trajectory lacks what a stage reads or is too large.
 */
final class CompleteJoins {
    private final JoinSettings settings;
    private final TrajectoryMaker maker;
    private final JoinOutput out;

    CompleteJoins(JoinSettings settings, JoinOutput out) {
        this.settings = settings;
        this.maker = new TrajectoryMaker(settings.run(), settings.inputs());
        this.out = out;
    }

    /** Everybody is there and fits. */
    void leave(PendingJoin pendingJoin, long streamTimeMs) {
        for (PartnerArrival partner : pendingJoin.partners()) {
            String unavailable = partner.unavailable();
            if (unavailable != null && !canProceedWithout(partner, pendingJoin)) {
                out.leave(PartnerReasons.unavailable(partner.kind()), pendingJoin.rollout(), streamTimeMs, unavailable);
                return;
            }
        }
        if (isWithoutVerdict(pendingJoin)) {
            out.leave(
                    OutcomeReason.UNFINISHED,
                    pendingJoin.rollout(),
                    streamTimeMs,
                    unfinished(pendingJoin.rollout().rollout()));
            return;
        }
        Trajectory trajectory = maker.make(pendingJoin, out::at);
        Optional<StageInput> missing =
                TrajectoryNotes.of(trajectory, settings.inputs()).missing();
        if (missing.isPresent()) {
            out.refuse(pendingJoin.rollout(), MissingInput.of(missing.get()));
            return;
        }
        byte[] bytes = settings.trajectories().serialize(settings.topics().trajectories(), trajectory);
        if (bytes.length > settings.maxRecordBytes()) {
            out.refuse(
                    pendingJoin.rollout(),
                    Refusal.of(
                            RefusalReason.TOO_LARGE,
                            "response_tokens",
                            "its trajectory would take " + bytes.length + " bytes, a record may take "
                                    + settings.maxRecordBytes()
                                    + "; raise max_record_bytes and the topic's max.message.bytes, or lower max_tokens"));
        } else {
            out.joined(pendingJoin, bytes);
        }
    }

    /** Its own reward says nothing of a rollout that was broken off; one that was found apart from it does. */
    private static boolean isWithoutVerdict(PendingJoin pendingJoin) {
        FinishReason reason = pendingJoin.rollout().rollout().getFinishReason();
        return (reason == FinishReason.ABORTED || reason == FinishReason.FAILED)
                && pendingJoin.reward().isEmpty();
    }

    private static String unfinished(Rollout rollout) {
        return "it ended by " + rollout.getFinishReason() + " after "
                + rollout.getMask().remaining() + " tokens"
                + (rollout.getError() == null ? "" : ": " + rollout.getError());
    }

    /** A score without old log-probs, under a configuration that goes on without them; all else of a score must be there. */
    private boolean canProceedWithout(PartnerArrival partner, PendingJoin pendingJoin) {
        return partner.kind() == JoinSide.SCORE
                && settings.missingOld().goesOn()
                && pendingJoin.scored(PolicyRole.PROXIMAL).isPresent();
    }

    /** Why a rollout is refused that lacks what a stage of the algorithm reads, and who could have given it. */
    static final class MissingInput {
        private MissingInput() {}

        static Refusal of(StageInput input) {
            return Refusal.of(
                    RefusalReason.VECTORS,
                    field(input),
                    "a stage of the algorithm reads " + input.text() + ", and the rollout has none; " + wayOut(input)
                            + ", or leave that stage out");
        }

        private static String field(StageInput input) {
            return switch (input) {
                case TURN_REWARDS -> "credit.turn_level_rewards";
                case TOKEN_REWARDS -> "credit.token_level_rewards";
                case VALUES -> "credit.token_level_values";
                case GREEDY_REWARDS -> "credit.greedy_reward";
                case REWARD_COMPONENTS -> "reward_components";
                case DISTRIBUTIONS -> "sampling_trace.top_log_probs";
                default -> "";
            };
        }

        private static String wayOut(StageInput input) {
            return switch (input) {
                case TURN_REWARDS, TOKEN_REWARDS ->
                    "have them recorded (reward.credit=true, of an environment that knows them, or a reward record with credit)";
                case VALUES -> "have a critic write them (in the credit of a reward record, or of the rollout)";
                case GREEDY_REWARDS ->
                    "have the prompt answered greedily too, and that reward written beside (in the credit of a reward record, or of the rollout)";
                case REWARD_COMPONENTS -> "have its environment or reward function name them";
                case DISTRIBUTIONS ->
                    "have them recorded and scored (admission.sampling.top_log_probs and scorer.top_log_probs)";
                case ENTROPIES -> "have them scored (scorer.entropies=true)";
                case SQUARED_PROBABILITIES -> "have them scored (scorer.sum_squared_probs=true)";
                case REFERENCE -> "have a reference score joined (topology.join.reference=true)";
                case TEACHER -> "have a teacher's score joined (topology.join.teacher=true)";
                default -> "have them recorded";
            };
        }
    }

    /**
     * Makes the trajectory of a rollout and its partners.
     *
     * <p>Behavior log-probs are those that scores can be compared with: over the kept tokens where the rollout's sampling keeps
     * its mask, which then goes along, else before truncation. Vectors are views of the records' own bytes. Immutable and thread-safe.
     */
    static final class TrajectoryMaker {
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
}
