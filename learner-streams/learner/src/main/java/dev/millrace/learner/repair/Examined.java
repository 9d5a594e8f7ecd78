package dev.millrace.learner.repair;

import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.stream.Stream;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;

/**
 * What was found.
 *
 * @param inconsistencies empty if the log agrees with itself
 * @param goodVersion newest version that a new epoch can go on from; empty if there is none
 * @param lostBatches ids of batches that are due and will not come, in order
 * @param open transactions that hold readers back
 * @param outside committed offsets that lie outside their topics, by consumer group, each as it should be
 */
public record Examined(
        List<Inconsistency> inconsistencies,
        OptionalLong goodVersion,
        List<Long> lostBatches,
        List<OpenTransaction> open,
        Map<String, Map<TopicPartition, OffsetAndMetadata>> outside) {
    public Examined {
        inconsistencies = List.copyOf(inconsistencies);
        lostBatches = List.copyOf(lostBatches);
        open = List.copyOf(open);
        outside = Map.copyOf(outside);
    }

    public boolean offers(Way.Kind kind) {
        return ways().anyMatch(way -> way.kind() == kind);
    }

    public Stream<Way> ways() {
        return inconsistencies.stream().flatMap(found -> found.ways().stream());
    }
}
