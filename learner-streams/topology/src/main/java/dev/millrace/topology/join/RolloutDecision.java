package dev.millrace.topology.join;

import dev.millrace.topology.ingress.RolloutArrival;

/**
 * What to do with a rollout that has just arrived.
 *
 * <p>Pure: what is remembered goes in, the decision comes out.
 */
enum RolloutDecision {
    /** Its group was announced otherwise by a sibling: refuse it. */
    REFUSE_SIBLING,
    /** It has been there before. */
    DUPLICATE,
    /** It is this sample's rollout. */
    TAKE;

    static RolloutDecision of(
            RolloutArrival rollout, DeduplicationEntry.Announcement announced, DeduplicationEntry group) {
        if (group.has(rollout.kind(), rollout.name().sampleIndex())) {
            return DUPLICATE;
        }
        return group.agreesWith(announced) ? TAKE : REFUSE_SIBLING;
    }
}
