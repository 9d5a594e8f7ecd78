package dev.millrace.weights;

import java.nio.charset.StandardCharsets;
import java.util.List;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.utils.Utils;

/**
 * The partition of a topic with everything about one policy, as Kafka's default partitioner chooses it for the policy's
 * id as key, {@code (murmur2(id) & 0x7fffffff) mod partitions}.
 *
 * <p>Records with a longer key, such as policy id and version, are sent to it explicitly.
 */
public final class PolicyPartition {
    private PolicyPartition() {}

    /**
     * The partition among those a client has named ({@code partitionsFor}).
     *
     * @throws IllegalStateException if there are none, which means that the topic does not exist
     */
    public static int of(String policyId, String topic, List<PartitionInfo> partitions) {
        if (partitions == null || partitions.isEmpty()) {
            throw new IllegalStateException("topic " + topic + " does not exist; create the run's topics first");
        }
        return Utils.toPositive(Utils.murmur2(policyId.getBytes(StandardCharsets.UTF_8))) % partitions.size();
    }
}
