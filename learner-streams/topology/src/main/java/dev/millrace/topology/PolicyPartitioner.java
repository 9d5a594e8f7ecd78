package dev.millrace.topology;

import java.nio.charset.StandardCharsets;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.streams.processor.StreamPartitioner;

/** Sends everything to the one partition that belongs to a policy: {@code murmur2(policy id) mod partitions}. */
final class PolicyPartitioner implements StreamPartitioner<byte[], byte[]> {
    private final int hash;

    PolicyPartitioner(String policyId) {
        this.hash = Utils.toPositive(Utils.murmur2(policyId.getBytes(StandardCharsets.UTF_8)));
    }

    @Override
    public Optional<Set<Integer>> partitions(String topic, byte[] key, byte[] value, int numPartitions) {
        return Optional.of(Set.of(hash % numPartitions));
    }
}
