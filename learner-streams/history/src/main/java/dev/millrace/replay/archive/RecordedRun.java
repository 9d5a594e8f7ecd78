package dev.millrace.replay.archive;

import dev.millrace.log.deadletter.RefusedPlaces;
import dev.millrace.log.scan.RecordFetcher;
import dev.millrace.schemas.registry.SchemaRegistry;
import dev.millrace.schemas.run.EpochLineage;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.function.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;

/**
 * A recorded run on a cluster, in an archive or in a folder, up to its end when opened. Read-only. Records keep their
 * partitions and offsets. Thread-safe; cursors and fetchers are not.
 */
public interface RecordedRun extends AutoCloseable {

    /** @param end behind the last */
    record Range(long from, long end) {
        /**
         * Range of an epoch; of versions and evaluations including what it inherits.
         *
         * @param begin first offset of the log
         * @param end behind the last
         */
        public static Range ofEpoch(
                RunTopics topics, EpochLineage lineage, TopicPartition partition, long begin, long end) {
            boolean isInherited = Set.of(
                            topics.policyVersions(),
                            topics.weights(),
                            topics.optimizerState(),
                            topics.files(),
                            topics.evaluations())
                    .contains(partition.topic());
            long from =
                    isInherited ? begin : Math.max(begin, lineage.beginning(partition.topic(), partition.partition()));
            return new Range(from, Math.max(from, end));
        }
    }

    RunIdentity run();

    EpochLineage lineage();

    RunTopics topics();

    SchemaRegistry registry();

    /** Empty if unknown. */
    Optional<String> configuration();

    List<TopicPartition> partitions(String topic);

    Range range(TopicPartition partition);

    /** Committed records in order, from the given offset. */
    RecordCursor read(TopicPartition partition, long from);

    /** Hands over the run's committed records of a topic, partition by partition and in order. */
    default void forEach(String topic, Consumer<ConsumerRecord<byte[], byte[]>> reader) {
        for (TopicPartition partition : partitions(topic)) {
            try (RecordCursor cursor = read(partition, range(partition).from())) {
                for (var next = cursor.next(); next.isPresent(); next = cursor.next()) {
                    reader.accept(next.get());
                }
            }
        }
    }

    /** Refused records of a topic; reads all dead letters. */
    default RefusedPlaces refused(String topic) {
        RefusedPlaces refused = new RefusedPlaces(Set.of(topic));
        forEach(topics().deadLetters(), refused::add);
        return refused;
    }

    RecordFetcher fetcher();

    /** True if the run has more records than when opened. */
    boolean hasGrown();

    @Override
    void close();
}
