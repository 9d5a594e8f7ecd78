package dev.millrace.topology;

import dev.millrace.stages.CorrectionConfig;
import dev.millrace.topology.batch.BatchConfig;
import dev.millrace.topology.batch.GroupsConfig;
import dev.millrace.topology.ingress.IngressConfig;
import dev.millrace.topology.join.JoinConfig;

/**
 * Everything about the way from rollouts and scores to batches.
 *
 * @param ingress what records are held to
 * @param join how rollouts and scores wait for each other
 * @param corrections what is corrected for
 * @param groups when a group is ready
 * @param batch when a batch is cut
 * @param runtime how the stream engine runs it
 */
public record TopologyConfig(
        IngressConfig ingress,
        JoinConfig join,
        CorrectionConfig corrections,
        GroupsConfig groups,
        BatchConfig batch,
        RuntimeConfig runtime) {

    public TopologyConfig {
        if (groups.minSize() > ingress.maxGroupSize()) {
            throw new IllegalArgumentException("groups.min_size must be at most ingress.max_group_size "
                    + ingress.maxGroupSize() + ": " + groups.minSize());
        }
    }

    /** The default run: 256 sequences a batch, token weights truncated at 2, M2PO at 0.04, square root of the ESS. */
    public static TopologyConfig defaults() {
        return new TopologyConfig(
                IngressConfig.defaults(),
                JoinConfig.defaults(),
                CorrectionConfig.defaults(),
                GroupsConfig.defaults(),
                BatchConfig.defaults(),
                RuntimeConfig.defaults());
    }

    /** The same, run in another way. */
    public TopologyConfig with(RuntimeConfig otherRuntime) {
        return new TopologyConfig(ingress, join, corrections, groups, batch, otherRuntime);
    }

    /** The same with other batches. */
    public TopologyConfig with(BatchConfig otherBatch) {
        return new TopologyConfig(ingress, join, corrections, groups, otherBatch, runtime);
    }
}
