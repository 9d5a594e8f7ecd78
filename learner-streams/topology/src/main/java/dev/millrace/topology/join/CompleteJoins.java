package dev.millrace.topology.join;

import dev.millrace.corrections.stage.StageInput;
import dev.millrace.schemas.FinishReason;
import dev.millrace.schemas.PolicyRole;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.rollout.Refusal;
import dev.millrace.schemas.rollout.RefusalReason;
import dev.millrace.stages.TrajectoryNotes;
import dev.millrace.topology.ingress.JoinSide;
import dev.millrace.topology.ingress.PartnerArrival;
import dev.millrace.topology.task.OutcomeReason;
import java.util.Optional;

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
}
