package dev.millrace.log;

import dev.millrace.schemas.VersionEvaluation;
import dev.millrace.schemas.registry.SchemaRegistry;
import dev.millrace.schemas.run.EpochLineage;
import dev.millrace.schemas.run.EvaluationKey;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.schemas.serde.MalformedRecordException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.serialization.Deserializer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Makes a run's evaluations of the records of its topic, wherever they lie: its own epoch's, and those of the older versions that are its
 * past. The last record of a key counts. Owned by one thread, except {@link #evaluations()}, which any may ask.
 */
public final class EvaluationRecordReader {
    private static final Logger LOG = LoggerFactory.getLogger(EvaluationRecordReader.class);

    private final RunIdentity run;
    private final EpochLineage lineage;
    private final Deserializer<VersionEvaluation> records;
    private final Map<String, VersionEvaluation> byKey = new HashMap<>();
    private volatile Evaluations evaluations = Evaluations.NONE;

    public EvaluationRecordReader(RunIdentity run, EpochLineage lineage, SchemaRegistry registry) {
        this.run = run;
        this.lineage = lineage;
        this.records = AvroSerde.of(VersionEvaluation.class, registry).deserializer();
    }

    /** Takes the next record; what is no evaluation of this run is passed over. */
    public void accept(ConsumerRecord<byte[], byte[]> record) {
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
            LOG.warn("skipped {}-{}@{}: {}", record.topic(), record.partition(), record.offset(), e.getMessage());
        }
    }

    private boolean isOurs(VersionEvaluation evaluation) {
        return run.runId().equals(evaluation.getRunId())
                && run.policyId().equals(evaluation.getPolicyId())
                && (run.epoch() == evaluation.getEpoch()
                        || lineage.inherits(evaluation.getEpoch(), evaluation.getVersion()));
    }

    /** Whether an evaluation of the same weights on the same prompts has been read under the same key. */
    boolean has(VersionEvaluation evaluation) {
        VersionEvaluation there = byKey.get(EvaluationKey.of(evaluation).toString());
        return there != null && there.getWeightsSha256().equals(evaluation.getWeightsSha256());
    }

    /** As {@link EvaluationLog#newestOf}. */
    OptionalLong newestOf(String dataSha256, long newest) {
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
}
