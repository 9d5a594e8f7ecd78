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
    /** Some members name versions that were never published: these leave, and it is decided again about the rest. */
    DROP_UNKNOWN_VERSIONS,
    /** It is short, and too short to be trained on. */
    DROP_SHORT,
    /** Its rewards are all equal and such groups are not wanted. */
    DROP_ZERO_VARIANCE;

    /**
     * @param nowMs on the clock by which the group began
     * @param versions what has been published so far
     */
    static GroupDecision of(Group group, long nowMs, GroupsConfig config, VersionHistory versions) {
        boolean unknown = group.members().stream().anyMatch(versions::lacksVersionOf);
        if (!group.isComplete() || unknown) {
            if (nowMs - group.sinceMs() < config.deadlineMs()) {
                return WAIT; // for siblings, or for a version that is on its way
            }
            if (unknown) {
                return DROP_UNKNOWN_VERSIONS;
            }
            if (group.members().size() < config.minSize()) {
                return DROP_SHORT;
            }
        }
        return config.zeroVariance() != ZeroVariance.KEEP && group.hasZeroVariance() ? DROP_ZERO_VARIANCE : READY;
    }
}
