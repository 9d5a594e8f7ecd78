package dev.millrace.log.evaluation;

import dev.millrace.log.LogConnection;
import dev.millrace.log.follow.LogReader;
import dev.millrace.log.follow.ReadLimit;
import dev.millrace.schemas.VersionEvaluation;
import dev.millrace.schemas.run.EpochLineage;
import dev.millrace.schemas.run.EvaluationKey;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.schemas.serde.MalformedRecordException;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Deserializer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What the topic {@code evaluations} says of a run: its own epoch's evaluations, and those of the older versions that are its past.
 *
 * <p>A run of an earlier form has no such topic, and no evaluation. Owned by one thread, except {@link #evaluations()}, which any may ask.
 */
public final class EvaluationLog implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(EvaluationLog.class);
    private static final Duration LOOK = Duration.ofSeconds(10);

    private final RunIdentity run;
    private final EpochLineage lineage;
    private final LogReader log;
    private final List<TopicPartition> partitions;
    private final Deserializer<VersionEvaluation> records;
    private final Map<String, VersionEvaluation> byKey = new HashMap<>();
    private volatile Evaluations evaluations = Evaluations.NONE;

    /** Connects; nothing is read yet. */
    public EvaluationLog(LogConnection connection) {
        this.run = connection.run();
        this.lineage = connection.lineage();
        this.records =
                AvroSerde.of(VersionEvaluation.class, connection.registry()).deserializer();
        this.log = new LogReader(connection);
        String topic = connection.topics().evaluations();
        this.partitions = log.consumer().listTopics(LOOK).containsKey(topic) ? log.fromBeginning(topic) : List.of();
    }

    /**
     * Reads what is new, to the end as it was when this was called.
     *
     * @return whether that end was reached within the limit
     */
    public boolean update(Duration limit) {
        return partitions.isEmpty()
                || log.readTo(log.consumer().endOffsets(partitions, limit), ReadLimit.within(limit), this::accept);
    }

    private void accept(ConsumerRecord<byte[], byte[]> record) {
        if (record.value() == null) {
            return;
        }
        try {
            VersionEvaluation evaluation = records.deserialize(record.topic(), record.value());
            if (isOurs(evaluation)) {
                byKey.put(EvaluationKey.of(evaluation).toString(), evaluation);
                evaluations = new Evaluations(List.copyOf(byKey.values()));
            }
        } catch (MalformedRecordException e) {
            LOG.warn("passed over {}-{}@{}: {}", record.topic(), record.partition(), record.offset(), e.getMessage());
        }
    }

    private boolean isOurs(VersionEvaluation evaluation) {
        return run.runId().equals(evaluation.getRunId())
                && run.policyId().equals(evaluation.getPolicyId())
                && (run.epoch() == evaluation.getEpoch()
                        || lineage.inherits(evaluation.getEpoch(), evaluation.getVersion()));
    }

    /** Whether an evaluation of the same weights on the same prompts has been read under the same key. */
    public boolean has(VersionEvaluation evaluation) {
        VersionEvaluation there = byKey.get(EvaluationKey.of(evaluation).toString());
        return there != null && there.getWeightsSha256().equals(evaluation.getWeightsSha256());
    }

    /**
     * The newest version that was evaluated on these prompts, of those there are.
     *
     * @param newest newest version that there is: what a log that lost its end had beyond it will be other versions
     */
    public OptionalLong newestOf(String dataSha256, long newest) {
        return byKey.values().stream()
                .filter(evaluation -> evaluation.getDataSha256().equals(dataSha256))
                .mapToLong(VersionEvaluation::getVersion)
                .filter(version -> version <= newest)
                .max();
    }

    /** Those that were read so far. Thread-safe. */
    public Evaluations evaluations() {
        return evaluations;
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
        return evaluations.best();
    }

    @Override
    public void close() {
        log.close();
    }
}
