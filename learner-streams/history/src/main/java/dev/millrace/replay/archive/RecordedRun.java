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
import org.apache.kafka.common.TopicPartition;

/**
 * A run as it was recorded, on a cluster or in an archive, up to where it was when this was opened.
 *
 * <p>Nothing here writes. Records come with the partitions and offsets under which the run itself knows them, so that
 * what points at a record finds it. Thread-safe; cursors and fetchers are not.
 */
public interface RecordedRun extends AutoCloseable {

    /**
     * The records of a partition that are there.
     *
     * @param from the first offset
     * @param end behind the last
     */
    record Range(long from, long end) {
        /**
         * What an epoch has of a partition; of versions and evaluations also what it inherits, which may be all there were.
         *
         * @param begin first offset that the log has
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

    /** Where the epoch that was recorded comes from. */
    EpochLineage lineage();

    RunTopics topics();

    /** The schemas that the records were written with. */
    SchemaRegistry registry();

    /** The run's configuration, if it is known here. */
    Optional<String> configuration();

    /** The partitions of a topic, in order. */
    List<TopicPartition> partitions(String topic);

    Range range(TopicPartition partition);

    /**
     * The committed records of a partition, in order.
     *
     * @param from the first offset that is wanted
     */
    RecordCursor read(TopicPartition partition, long from);

    /** Which records of a topic were refused, so that nothing rests on them; reads all dead letters. */
    default RefusedPlaces refused(String topic) {
        RefusedPlaces refused = new RefusedPlaces(Set.of(topic));
        for (TopicPartition partition : partitions(topics().deadLetters())) {
            try (RecordCursor cursor = read(partition, range(partition).from())) {
                for (var next = cursor.next(); next.isPresent(); next = cursor.next()) {
                    refused.add(next.get());
                }
            }
        }
        return refused;
    }

    /** Records by their places. */
    RecordFetcher fetcher();

    /** True if the run has more records now than when it was opened. */
    boolean hasGrown();

    @Override
    void close();
}
