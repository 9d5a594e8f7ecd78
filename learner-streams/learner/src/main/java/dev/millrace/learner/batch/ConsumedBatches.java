package dev.millrace.learner.batch;

import dev.millrace.log.LogConnection;
import dev.millrace.log.scan.LogReader;
import dev.millrace.log.scan.ReadLimit;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.TrainingStep;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.schemas.serde.MalformedRecordException;
import dev.millrace.weights.PolicyPartition;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Predicate;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Deserializer;

/**
 * The consumed batches according to the log: the newest version's batch, and after it the batches that were starved at
 * that version according to the training log or the metadata of the committed offset.
 *
 * <p>Batches of later versions in these two places do not count as consumed: their manifests are lost, and their
 * batches are trained on again.
 *
 * @param progress the last batch that was consumed
 * @param lostVersion newest published version that is no longer on the chain; -1 if none is lost
 * @param learntBefore for each batch whose version is lost, the hash of its weights, if the training log has it
 */
public record ConsumedBatches(BatchProgress progress, long lostVersion, Map<Long, String> learntBefore) {
    private static final int FIRST_LOOK = 64;
    /** This number of different steps proves that they are the log's real end, not copies appended later. */
    private static final int FEWEST_STEPS = 8;

    public ConsumedBatches {
        learntBefore = Map.copyOf(learntBefore);
    }

    /**
     * @param tip the newest version
     * @param steps of the training log after the tip's, in the order of their batches
     * @param committed from the metadata of the committed offset
     */
    static ConsumedBatches of(PolicyVersion tip, List<TrainingStep> steps, Optional<BatchProgress> committed) {
        long version = tip.getVersion();
        BatchProgress progress = new BatchProgress(tip.getBatchId(), tip.getRolloutsConsumed(), version);
        Map<Long, String> learntBefore = new HashMap<>();
        long lost = -1;
        for (TrainingStep step : steps) {
            if (step.getVersion() > version) {
                lost = Math.max(lost, step.getVersion());
                if (!step.getStarved()) {
                    learntBefore.put(step.getBatchId(), step.getWeightsSha256());
                }
            } else if (step.getStarved()
                    && step.getVersion() == version
                    && step.getBatchId() == progress.batchId() + 1) {
                progress = new BatchProgress(step.getBatchId(), step.getRolloutsConsumed(), version);
            }
        }
        if (committed.isPresent()) {
            BatchProgress said = committed.get();
            lost = said.version() > version ? Math.max(lost, said.version()) : lost;
            boolean isOfTip = said.version() == version || (said.version() < 0 && lost < 0);
            if (isOfTip && said.batchId() > progress.batchId()) {
                progress = said.at(version); // the training log has lost what the offset still says
            }
        }
        return new ConsumedBatches(progress, lost, learntBefore);
    }

    /**
     * The steps of the run and epoch that the training log has behind the one that made a version.
     *
     * @throws IllegalStateException if it cannot be read within the limit
     */
    static List<TrainingStep> stepsAfter(LogConnection connection, PolicyVersion tip, Duration limit) {
        return tail(connection, limit, steps -> steps.get(0).getBatchId() <= tip.getBatchId()).stream()
                .filter(step -> step.getBatchId() > tip.getBatchId())
                .sorted(Comparator.comparingLong(TrainingStep::getBatchId))
                .toList();
    }

    /**
     * The last step of the run and epoch that the training log has.
     *
     * @throws IllegalStateException if it cannot be read within the limit
     */
    public static Optional<TrainingStep> lastStep(LogConnection connection, Duration limit) {
        List<TrainingStep> steps = tail(connection, limit, some -> true);
        return steps.stream().max(Comparator.comparingLong(TrainingStep::getBatchId)); // a copy may lie behind it
    }

    /**
     * Whether the training log has lost its end: what the newest version and the committed offset say was consumed is told by no step.
     *
     * @return a sentence; empty if nothing is lost, or retention has removed all of it
     * @throws IllegalStateException if it cannot be read within the limit
     */
    static Optional<String> lostSteps(
            LogConnection connection, PolicyVersion tip, BatchProgress progress, Duration limit) {
        if (progress.batchId() < 0 || progress.batchId() == tip.getBatchId() && tip.getParentEpoch() != null) {
            return Optional.empty(); // nothing was consumed in this epoch
        }
        long last = lastStep(connection, limit).map(TrainingStep::getBatchId).orElse(-1L);
        if (last >= progress.batchId() || last < 0 && hasBegunLater(connection, limit)) {
            return Optional.empty();
        }
        return Optional.of("batch " + progress.batchId() + " was consumed, and "
                + (last < 0 ? "the epoch has no step" : "its last step is on batch " + last)
                + ": the end of the topic is lost; training continues; the ledger counts the rollouts of these"
                + " batches from the batches alone");
    }

    private static boolean hasBegunLater(LogConnection connection, Duration limit) {
        try (LogReader log = new LogReader(connection.as("consumed-batches"))) {
            return log.begin(partition(connection, log, connection.topics().trainingLog()), limit) > 0;
        }
    }

    static TopicPartition partition(LogConnection connection, LogReader log, String topic) {
        return new TopicPartition(
                topic,
                PolicyPartition.of(
                        connection.run().policyId(), topic, log.consumer().partitionsFor(topic)));
    }

    /** @param isEnough asked of what was found, if anything was, and otherwise more is read */
    private static List<TrainingStep> tail(
            LogConnection connection, Duration limit, Predicate<List<TrainingStep>> isEnough) {
        try (LogReader log = new LogReader(connection.as("consumed-batches"))) {
            TopicPartition partition =
                    partition(connection, log, connection.topics().trainingLog());
            log.consumer().assign(List.of(partition));
            long begin = log.begin(partition, limit);
            long end = log.end(partition, limit);
            for (long back = FIRST_LOOK; ; back *= 4) {
                long start = Math.max(begin, end - back);
                List<TrainingStep> steps = read(connection, log, partition, start, end, limit);
                boolean isMore =
                        steps.stream().map(TrainingStep::getBatchId).distinct().count() >= FEWEST_STEPS;
                if (start == begin || (isMore && isEnough.test(steps))) {
                    return steps;
                }
            }
        }
    }

    private static List<TrainingStep> read(
            LogConnection connection, LogReader log, TopicPartition partition, long start, long end, Duration limit) {
        Deserializer<TrainingStep> serde =
                AvroSerde.of(TrainingStep.class, connection.registry()).deserializer();
        List<TrainingStep> steps = new ArrayList<>();
        log.consumer().seek(partition, start);
        boolean isRead = log.readTo(Map.of(partition, end), ReadLimit.withoutProgress(limit), record -> {
            try {
                TrainingStep step = serde.deserialize(record.topic(), record.value());
                if (step != null
                        && connection.run().owns(step.getRunId(), step.getEpoch())
                        && connection.run().policyId().equals(step.getPolicyId())) {
                    steps.add(step);
                }
            } catch (MalformedRecordException e) {
                // not a step; the reader of the whole training log dead-letters it
            }
        });
        if (!isRead) {
            throw new IllegalStateException(partition + " could not be read to its end at offset " + end + " within "
                    + limit.toMillis() + " ms (weights.read_timeout_ms); " + log.progress());
        }
        return steps;
    }
}
