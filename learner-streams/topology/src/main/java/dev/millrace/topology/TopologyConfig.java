package dev.millrace.topology;

import dev.millrace.topology.batch.BatchConfig;
import dev.millrace.topology.batch.GroupsConfig;
import dev.millrace.topology.ingress.IngressConfig;
import dev.millrace.topology.join.JoinConfig;

/**
 * Everything about the way from rollouts and scores to batches but what is decided about them, which is the algorithm's.
 *
 * @param ingress what records are held to
 * @param join how rollouts and scores wait for each other
 * @param groups when a group is ready
 * @param batch when a batch is cut
 * @param runtime how the stream engine runs it
 */
public record TopologyConfig(
        IngressConfig ingress, JoinConfig join, GroupsConfig groups, BatchConfig batch, RuntimeConfig runtime) {

    public TopologyConfig {
        if (groups.minSize() > ingress.maxGroupSize()) {
            throw new IllegalArgumentException("groups.min_size must be at most ingress.max_group_size "
                    + ingress.maxGroupSize() + ": " + groups.minSize());
        }
    }

    /** 256 sequences a batch. */
    public static TopologyConfig defaults() {
        return new TopologyConfig(
                IngressConfig.defaults(),
                JoinConfig.defaults(),
                GroupsConfig.defaults(),
                BatchConfig.defaults(),
                RuntimeConfig.defaults());
    }

    /** The same, run in another way. */
    public TopologyConfig with(RuntimeConfig otherRuntime) {
        return new TopologyConfig(ingress, join, groups, batch, otherRuntime);
    }

    /** The same with other batches. */
    public TopologyConfig with(BatchConfig otherBatch) {
        return new TopologyConfig(ingress, join, groups, otherBatch, runtime);
    }
}
