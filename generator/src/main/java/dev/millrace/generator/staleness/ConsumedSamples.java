package dev.millrace.generator.staleness;

import dev.millrace.log.LogConnection;
import dev.millrace.schemas.TrainingStep;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.schemas.serde.MalformedRecordException;
import java.util.OptionalLong;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.serialization.Deserializer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reads off a record of the training log how many samples were consumed up to it: in batches that made a version, and in
 * starved ones, which made none.
 */
final class ConsumedSamples {
    private static final Logger LOG = LoggerFactory.getLogger(ConsumedSamples.class);

    private final String topic;
    private final RunIdentity run;
    private final Deserializer<TrainingStep> steps;

    ConsumedSamples(LogConnection connection) {
        this.topic = connection.topics().trainingLog();
        this.run = connection.run();
        this.steps = AvroSerde.of(TrainingStep.class, connection.registry()).deserializer();
    }

    /** Whether the record is of the training log. */
    boolean tells(ConsumerRecord<byte[], byte[]> record) {
        return record.topic().equals(topic);
    }

    /** Samples consumed up to a record of the training log; empty if it is none of this run. */
    OptionalLong in(ConsumerRecord<byte[], byte[]> record) {
        try {
            TrainingStep step = record.value() == null ? null : steps.deserialize(topic, record.value());
            return step != null && run.owns(step.getRunId(), step.getEpoch())
                    ? OptionalLong.of(step.getRolloutsConsumed())
                    : OptionalLong.empty();
        } catch (MalformedRecordException e) {
            LOG.warn(
                    "not counted, because it cannot be read: {}-{}@{}: {}",
                    record.topic(),
                    record.partition(),
                    record.offset(),
                    e.getMessage());
            return OptionalLong.empty();
        }
    }
}
