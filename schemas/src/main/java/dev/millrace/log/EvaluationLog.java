package dev.millrace.log;

import dev.millrace.log.scan.LogReader;
import dev.millrace.log.scan.ReadLimit;
import dev.millrace.schemas.VersionEvaluation;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import org.apache.kafka.common.TopicPartition;

/**
 * What the topic {@code evaluations} says of a run, read as it grows.
 *
 * <p>A run of an earlier form has no such topic, and no evaluation. Owned by one thread, except {@link #evaluations()}, which any may ask.
 */
public final class EvaluationLog implements AutoCloseable {
    private static final Duration LOOK = Duration.ofSeconds(10);

    private final LogReader log;
    private final List<TopicPartition> partitions;
    private final EvaluationRecordReader records;

    /** Connects; nothing is read yet. */
    public EvaluationLog(LogConnection connection) {
        this.records = new EvaluationRecordReader(connection.run(), connection.lineage(), connection.registry());
        this.log = new LogReader(connection.as("evaluations"));
        String topic = connection.topics().evaluations();
        this.partitions = log.consumer().listTopics(LOOK).containsKey(topic) ? log.fromBeginning(topic) : List.of();
    }

    /**
     * Reads new records, to the end of the log at the time of the call.
     *
     * @return whether that end was reached within the limit
     */
    public boolean update(Duration limit) {
        return partitions.isEmpty()
                || log.readTo(log.consumer().endOffsets(partitions, limit), ReadLimit.within(limit), records::accept);
    }

    /** Whether an evaluation of the same weights on the same prompts has been read under the same key. */
    public boolean has(VersionEvaluation evaluation) {
        return records.has(evaluation);
    }

    /**
     * The newest version that was evaluated on these prompts, of those there are.
     *
     * @param newest newest version that there is: what a log that lost its end had beyond it will be other versions
     */
    public OptionalLong newestOf(String dataSha256, long newest) {
        return records.newestOf(dataSha256, newest);
    }

    /** Those that were read so far. Thread-safe. */
    public Evaluations evaluations() {
        return records.evaluations();
    }

    /** All that a run's log has, read once. */
    public static Evaluations read(LogConnection connection, Duration limit) {
        try (EvaluationLog log = new EvaluationLog(connection)) {
            log.update(limit);
            return log.evaluations();
        }
    }

    /** The best version so far on the prompts that were asked last. */
    public Optional<VersionEvaluation> best() {
        return records.evaluations().best();
    }

    @Override
    public void close() {
        log.close();
    }
}
