package dev.millrace.topology.join;

import dev.millrace.topology.ingress.JoinSide;
import dev.millrace.topology.ingress.PartnerArrival;
import java.util.Optional;

/**
 * What to do with a partner of a rollout that has just arrived.
 *
 * <p>Pure: what is remembered goes in, the decision comes out.
 */
enum PartnerDecision {
    /** The sample has one of this kind already. */
    DUPLICATE,
    /** It is about a record that is not the one that was taken for the sample: a repetition of it. */
    OF_A_REPETITION,
    /** Its rollout is waiting. */
    MEET,
    /** Its rollout has left without it. */
    TOO_LATE,
    /** Its rollout has not come yet. */
    WAIT;

    static PartnerDecision of(PartnerArrival partner, DeduplicationEntry group, Optional<PendingRecord> rollout) {
        int sample = partner.name().sampleIndex();
        if (group.has(partner.kind(), sample)) {
            return DUPLICATE;
        }
        if (rollout.isPresent()) {
            return rollout.get().offset() == partner.aboutOffset() ? MEET : OF_A_REPETITION;
        }
        return group.has(JoinSide.ROLLOUT, sample) ? TOO_LATE : WAIT;
    }
}
