package dev.millrace.topology.batch;

import dev.millrace.topology.batch.GroupsConfig.ZeroVariance;

/**
 * What becomes of a group now.
 *
 * <p>Pure: the group, the time and the configuration go in, the decision comes out.
 */
enum GroupDecision {
    /** It waits for more members. */
    WAIT,
    /** It can be batched. */
    READY,
    /** It is short, and too short to be trained on. */
    DROP_SHORT,
    /** Its rewards are all equal and such groups are not wanted. */
    DROP_ZERO_VARIANCE;

    /** @param nowMs on the clock by which the group began */
    static GroupDecision of(Group group, long nowMs, GroupsConfig config) {
        if (!group.isComplete()) {
            if (nowMs - group.sinceMs() < config.deadlineMs()) {
                return WAIT;
            }
            if (group.members().size() < config.minSize()) {
                return DROP_SHORT;
            }
        }
        return config.zeroVariance() == ZeroVariance.DROP && group.hasZeroVariance() ? DROP_ZERO_VARIANCE : READY;
    }
}
