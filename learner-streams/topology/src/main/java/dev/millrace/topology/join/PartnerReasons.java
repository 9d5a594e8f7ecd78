package dev.millrace.topology.join;

import dev.millrace.topology.ingress.JoinSide;
import dev.millrace.topology.task.OutcomeReason;

/** How it is called that a partner is missing, is left over, or could not be made. */
final class PartnerReasons {
    private PartnerReasons() {}

    /** Why a rollout leaves that this partner never came to. */
    static OutcomeReason missing(JoinSide partner) {
        return switch (partner) {
            case SCORE -> OutcomeReason.UNSCORED;
            case REWARD -> OutcomeReason.UNREWARDED;
            case REFERENCE -> OutcomeReason.UNREFERENCED;
            case TEACHER -> OutcomeReason.UNTAUGHT;
            case ROLLOUT -> throw noPartner();
        };
    }

    /** Why this partner leaves without a rollout. */
    static OutcomeReason orphan(JoinSide partner) {
        return switch (partner) {
            case SCORE -> OutcomeReason.ORPHAN_SCORE;
            case REWARD -> OutcomeReason.ORPHAN_REWARD;
            case REFERENCE -> OutcomeReason.ORPHAN_REFERENCE;
            case TEACHER -> OutcomeReason.ORPHAN_TEACHER;
            case ROLLOUT -> throw noPartner();
        };
    }

    /** Why a rollout leaves whose partner says that it could not be made. */
    static OutcomeReason unavailable(JoinSide partner) {
        return partner == JoinSide.REWARD ? OutcomeReason.REWARD_UNAVAILABLE : OutcomeReason.VERSION_UNAVAILABLE;
    }

    private static IllegalArgumentException noPartner() {
        return new IllegalArgumentException("a rollout is nobody's partner");
    }
}
