package dev.millrace.runtime.live;

import dev.millrace.log.LogConnection;
import dev.millrace.log.follow.LogReader;
import dev.millrace.runtime.report.StepRow;
import dev.millrace.schemas.TrainingStep;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.schemas.serde.MalformedRecordException;
import dev.millrace.stages.IdleStages;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.serialization.Deserializer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Follows the training log from its beginning: every committed step of the run, as soon as it is committed.
 *
 * <p>{@link #run()} belongs to one thread; {@link #steps()} and {@link #idleStages()} may be read from any.
 */
public final class StepLog implements Runnable {
    private static final Logger LOG = LoggerFactory.getLogger(StepLog.class);

    private final LogConnection connection;
    private final List<StepRow> steps = new CopyOnWriteArrayList<>();
    /** Batches whose steps are there; of the log's own thread. */
    private final Set<Long> batches = new HashSet<>();

    private final LogReader log;
    private final IdleStages stages = new IdleStages(IdleStages.STEPS);
    private volatile List<IdleStages.Idle> idleStages = List.of();

    public StepLog(LogConnection connection) {
        this.connection = connection;
        this.log = new LogReader(connection);
    }

    /** The steps so far, oldest first; grows while the log is followed. */
    public List<StepRow> steps() {
        return steps;
    }

    /** Stages that have not acted for {@value IdleStages#STEPS} steps. */
    public List<IdleStages.Idle> idleStages() {
        return idleStages;
    }

    @Override
    public void run() {
        Deserializer<TrainingStep> deserializer =
                AvroSerde.of(TrainingStep.class, connection.registry()).deserializer();
        try (log) {
            log.fromBeginning(connection.topics().trainingLog());
            log.follow(record -> take(record, deserializer), () -> {});
        }
    }

    /** What is no step of this run is passed over: the log is open to everyone, and following it decides nothing. */
    private void take(ConsumerRecord<byte[], byte[]> record, Deserializer<TrainingStep> deserializer) {
        try {
            TrainingStep step = deserializer.deserialize(record.topic(), record.value());
            if (step != null && connection.run().owns(step.getRunId(), step.getEpoch())) {
                if (!batches.add(step.getBatchId())) {
                    LOG.warn(
                            "{}-{}@{} is passed over: the step on batch {} was told before",
                            record.topic(),
                            record.partition(),
                            record.offset(),
                            step.getBatchId());
                    return;
                }
                steps.add(StepRow.of(step));
                stages.add(step);
                idleStages = stages.idle();
            }
        } catch (MalformedRecordException e) {
            LOG.warn(
                    "{}-{}@{} is passed over: {}", record.topic(), record.partition(), record.offset(), e.getMessage());
        }
    }

    /** Ends {@link #run()}. */
    public void stop() {
        log.stop();
    }
}
