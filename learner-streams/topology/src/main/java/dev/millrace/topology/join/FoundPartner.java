package dev.millrace.topology.join;

import dev.millrace.topology.ingress.JoinSide;
import dev.millrace.topology.ingress.RolloutArrival;
import java.util.Optional;

/**
 * What a rollout that has just been taken finds of one of its partners.
 *
 * <p>Pure: what is remembered goes in, the decision comes out.
 */
enum FoundPartner {
    /** It waits. */
    WAITS,
    /** One waits under its name, but for another record of it, which did not last: that one leaves. */
    OF_ANOTHER_RECORD,
    /** It has left without the rollout, so none will come. */
    HAS_LEFT,
    /** It has not come yet, or was of the first coming of a rollout that was refused then and is redriven now. */
    NOT_YET;

    static FoundPartner of(
            JoinSide partner, RolloutArrival rollout, DeduplicationEntry group, Optional<PendingRecord> waiting) {
        if (waiting.isPresent()) {
            return waiting.get().aboutOffset() == rollout.offset() ? WAITS : OF_ANOTHER_RECORD;
        }
        boolean hasBeen = group.has(partner, rollout.name().sampleIndex());
        return hasBeen && !rollout.isRedriven() ? HAS_LEFT : NOT_YET;
    }
}
