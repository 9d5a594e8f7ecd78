package dev.millrace.runtime.train;

import dev.millrace.log.LogConnection;
import dev.millrace.log.scan.LogReader;
import dev.millrace.schemas.TrainingStep;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.schemas.serde.MalformedRecordException;
import java.util.HashSet;
import java.util.Set;
import java.util.function.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.Deserializer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Follows the training log from its beginning and reports every committed step of the run once, in log order. One thread calls
 * {@link #run()} and receives the steps.
 */
public final class StepFollower implements Runnable {
    private static final Logger LOG = LoggerFactory.getLogger(StepFollower.class);

    private final LogConnection connection;
    private final Consumer<TrainingStep> told;
    /** Batches whose steps were reported. */
    private final Set<Long> batches = new HashSet<>();

    private final LogReader log;

    public StepFollower(LogConnection connection, Consumer<TrainingStep> told) {
        this.connection = connection;
        this.told = told;
        this.log = LogReader.following(connection.as("steps"));
    }

    @Override
    public void run() {
        Deserializer<TrainingStep> deserializer =
                AvroSerde.of(TrainingStep.class, connection.registry()).deserializer();
        try (log) {
            log.fromBeginning(connection.topics().trainingLog());
            log.follow(record -> take(record, deserializer), () -> {});
        } catch (WakeupException e) {
            LOG.debug("stopped before it had read anything", e); // only stop() wakes this reader
        }
    }

    /** Skips records that are not steps of this run: anyone may write to the log. */
    private void take(ConsumerRecord<byte[], byte[]> record, Deserializer<TrainingStep> deserializer) {
        try {
            TrainingStep step = deserializer.deserialize(record.topic(), record.value());
            if (step != null && connection.run().owns(step.getRunId(), step.getEpoch())) {
                if (!batches.add(step.getBatchId())) {
                    LOG.warn(
                            "skipped {}-{}@{}: duplicate of the step on batch {}",
                            record.topic(),
                            record.partition(),
                            record.offset(),
                            step.getBatchId());
                    return;
                }
                told.accept(step);
            }
        } catch (MalformedRecordException e) {
            LOG.warn("skipped {}-{}@{}: {}", record.topic(), record.partition(), record.offset(), e.getMessage());
        }
    }

    /** Ends {@link #run()}. */
    public void stop() {
        log.stop();
    }
}
