package dev.millrace.topology;

import dev.millrace.log.LogConnection;
import dev.millrace.log.scan.KafkaRecordFetcher;
import dev.millrace.log.scan.RecordFetcher;
import dev.millrace.schemas.registry.SchemaRegistry;
import dev.millrace.schemas.run.EpochLineage;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.topology.task.TopologyMeters;
import java.util.function.Supplier;

/**
 * The run that a topology works for, and its access to the run's log. Immutable and thread-safe.
 *
 * @param lineage where the run's epoch comes from
 * @param fetchers makes a fetcher for each task, which reads records again
 * @param maxValueBytes largest value that the log takes
 */
public record RunContext(
        RunIdentity run,
        EpochLineage lineage,
        RunTopics topics,
        SchemaRegistry registry,
        Supplier<RecordFetcher> fetchers,
        int maxValueBytes,
        TopologyMeters meters) {

    /** A run on its log. */
    public static RunContext of(LogConnection connection, TopologyMeters meters) {
        return new RunContext(
                connection.run(),
                connection.lineage(),
                connection.topics(),
                connection.registry(),
                () -> new KafkaRecordFetcher(connection, connection.patience()),
                MillraceTopology.maxValueBytes(connection),
                meters);
    }
}
