package dev.millrace.learner;

import dev.millrace.learner.batch.IncomingBatch;
import dev.millrace.log.LogConnection;
import dev.millrace.log.transaction.AcknowledgedProducer;
import dev.millrace.log.transaction.Incarnation;
import dev.millrace.log.transaction.TransactionalWriter;
import dev.millrace.log.transaction.UncertainCommitException;
import dev.millrace.policy.autodiff.AdamW;
import dev.millrace.policy.weights.LoraAdapter;
import dev.millrace.policy.weights.Weights;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.TrainingStep;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.weights.Checkpoints;
import dev.millrace.weights.PolicyPartition;
import dev.millrace.weights.VersionFacts;
import dev.millrace.weights.VersionSize;
import dev.millrace.weights.VersionWriter;
import dev.millrace.weights.WeightsConfig;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.errors.InterruptException;
import org.apache.kafka.common.serialization.Serializer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.slf4j.MDC;

/**
 * Commits the learner's steps, each in one transaction: chunks of weights and optimiser state, manifest, training-log record,
 * dead letters of refused batches, and the batch's offset.
 *
 * <p>Uses one transactional id per run, so a new committer fences every older one. When the constructor returns, the older
 * one's open transaction is aborted and its committed records are readable. Do not use a committer after an exception.
 *
 * <p>A step's transaction ends in the background while the next step is computed; the next transaction begins after it. Used
 * by one thread.
 */
public final class VersionCommitter implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(VersionCommitter.class);

    /** The client's own, and the least that it takes. */
    private static final long DELIVERY_MS = 120_000;
    /** The client's own; what does not answer within it is tried again with another producer. */
    private static final long BLOCK_MS = 60_000;
    /** What a broker allows unless its transaction.max.timeout.ms says otherwise. */
    private static final long LONGEST_TRANSACTION_MS = 900_000;

    private static final long CLOSE_LIMIT_MS = 5_000;

    private final String policyId;
    private final String trainingLog;
    private final TransactionalWriter writer;
    private final VersionWriter versions;
    private final CheckpointSchedule checkpoints;
    private final Serializer<TrainingStep> steps;
    private final int trainingLogPartition;
    private final ExecutorService thread;
    private Map<Long, String> learntBefore = Map.of();
    private Future<Committed> running = CompletableFuture.completedFuture(null);

    /** Makes the producer; a seam for tests that kill a learner between any two of its calls. */
    @FunctionalInterface
    public interface Producers {
        Producer<byte[], byte[]> create(Map<String, Object> properties);

        /** Real ones. */
        static Producers kafka() {
            return AcknowledgedProducer::new;
        }
    }

    /**
     * Fences every older committer of the run.
     *
     * @throws dev.millrace.log.transaction.TakenOverException if this learner had the run, and a newer one has it now
     * @throws KafkaException if the broker cannot be reached, or the older one's transaction not ended, within its limit
     */
    public VersionCommitter(
            LogConnection connection, WeightsConfig config, Incarnation incarnation, Producers producers) {
        String transactionalId = connection.scoped("learner");
        long sendLimitMs = connection.limit(config.sendTimeoutMs()).toMillis();
        this.policyId = connection.run().policyId();
        this.trainingLog = connection.topics().trainingLog();
        Map<String, Object> properties = new HashMap<>(connection
                .as("commits")
                .producer(Map.of(
                        "transactional.id",
                        transactionalId,
                        "enable.idempotence",
                        true,
                        "acks",
                        "all",
                        "compression.type",
                        "none", // floats of weights do not compress
                        "batch.size",
                        1 << 20, // small tensors go together, and a version of a small model in one request
                        "linger.ms",
                        1, // for which the commit of a version waits
                        "max.block.ms",
                        Math.min(BLOCK_MS, sendLimitMs),
                        "delivery.timeout.ms",
                        Math.toIntExact(Math.max(DELIVERY_MS, sendLimitMs)),
                        "transaction.timeout.ms",
                        Math.toIntExact(Math.min(LONGEST_TRANSACTION_MS, sendLimitMs + 30_000)))));
        this.writer =
                TransactionalWriter.of(connection, transactionalId, incarnation, () -> producers.create(properties));
        writer.fenceOthers();
        try {
            this.trainingLogPartition =
                    PolicyPartition.of(policyId, trainingLog, writer.producer().partitionsFor(trainingLog));
        } catch (RuntimeException e) {
            writer.close();
            throw e;
        }
        this.versions = new VersionWriter(connection, writer.producer(), config);
        this.checkpoints = new CheckpointSchedule(config);
        this.steps = AvroSerde.of(TrainingStep.class, connection.registry()).serializer();
        Map<String, String> role =
                Optional.ofNullable(MDC.getCopyOfContextMap()).orElse(Map.of());
        this.thread = Executors.newSingleThreadExecutor(task -> {
            Thread ending = new Thread(
                    () -> {
                        MDC.setContextMap(role);
                        task.run();
                    },
                    "version-commits");
            ending.setDaemon(true);
            return ending;
        });
    }

    /** Publishes the initial weights; no batch made them. */
    public PolicyVersion commitInitial(VersionFacts facts, Weights weights, AdamW.State optimizer) {
        PolicyVersion manifest = inTransaction("version " + facts.version(), out -> write(facts, weights, optimizer));
        published(manifest, weights);
        return manifest;
    }

    /**
     * Sets the version that a restarted learner continues from, so that the next version can be a delta against it.
     *
     * @param checkpoint the newest version that has the optimiser's state
     */
    public void continueFrom(PolicyVersion newest, Weights weights, PolicyVersion checkpoint) {
        checkpoints.published(checkpoint);
        published(newest, weights);
    }

    /**
     * Bounds the time between two versions that have the optimiser's state, so that the steps between them can be
     * repeated.
     *
     * @param longestMs time for which the log keeps the batches and trajectories since the last such version
     */
    public void checkpointWithin(long longestMs, long lastStep) {
        checkpoints.within(longestMs, lastStep);
    }

    private PolicyVersion write(VersionFacts facts, Weights weights, AdamW.State optimizer) {
        // an adapter's base has no optimiser state, and the adapter's state begins with zeros
        boolean isOfThese = optimizer.first().specs().equals(weights.trained().specs());
        VersionSize size = VersionSize.of(weights.shape(), weights.adapter().map(LoraAdapter::shape));
        return isOfThese && checkpoints.isDue(facts, size)
                ? versions.write(facts, weights, optimizer)
                : versions.writeWithoutState(facts, weights, optimizer.steps());
    }

    private void published(PolicyVersion manifest, Weights weights) {
        checkpoints.published(manifest);
        versions.continueFrom(manifest, weights);
    }

    /** What a step left on the log. */
    public record Committed(PolicyVersion manifest, TrainingStep step) {}

    /**
     * Publishes the version that a batch made. Returns when the log has its weights and the transaction only remains to be
     * ended, which {@link #settle()} waits for.
     *
     * @param record makes the training-log record, given the manifest; called by another thread before this returns
     * @param batch  its offset and its dead letters go along
     * @throws dev.millrace.log.transaction.FencedWriterException if another learner has taken over, or the broker gave the transaction up
     * @throws KafkaException if it cannot be written; the transaction is aborted, or will be by the next learner
     */
    public Committed commit(
            VersionFacts facts,
            Weights weights,
            AdamW.State optimizer,
            Function<PolicyVersion, TrainingStep> record,
            IncomingBatch batch,
            ConsumerGroupMetadata group) {
        settle();
        CompletableFuture<Committed> sent = new CompletableFuture<>();
        Future<Committed> transaction = thread.submit(() -> {
            try {
                return transact("version " + facts.version(), out -> {
                    PolicyVersion manifest = write(facts, weights, optimizer);
                    Committed committed = new Committed(manifest, record.apply(manifest));
                    sendStep(out, committed.step(), batch);
                    sent.complete(committed); // what follows reads neither weights nor optimiser
                    sendOffset(out, batch, manifest.getVersion(), group);
                    return committed;
                });
            } catch (Throwable e) {
                sent.completeExceptionally(e);
                throw e;
            }
        });
        Committed committed = result(sent);
        running = transaction;
        published(committed.manifest(), weights);
        return committed;
    }

    /** Whether the last step's transaction has ended, well or not. */
    public boolean isEnded() {
        return running.isDone();
    }

    /**
     * Waits for the end of the last step's transaction.
     *
     * @throws dev.millrace.log.transaction.FencedWriterException as {@link #commit}
     * @throws KafkaException as {@link #commit}
     */
    public void settle() {
        result(running);
    }

    private static Committed result(Future<Committed> future) {
        try {
            return future.get();
        } catch (ExecutionException e) {
            if (e.getCause() instanceof RuntimeException failure) {
                throw failure;
            }
            if (e.getCause() instanceof Error failure) {
                throw failure;
            }
            throw new IllegalStateException(e.getCause());
        } catch (InterruptedException e) {
            throw new InterruptException(e);
        }
    }

    /**
     * Commits a starved batch: its training-log record, its offset and its dead letters, and no version.
     *
     * @throws dev.millrace.log.transaction.FencedWriterException if another learner has taken over, or the broker gave the transaction up
     * @throws KafkaException as {@link #commit}
     */
    public void commitStarved(
            PolicyVersion newest, TrainingStep step, IncomingBatch batch, ConsumerGroupMetadata group) {
        inTransaction("the step on batch " + step.getBatchId(), out -> {
            sendStep(out, step, batch);
            sendOffset(out, batch, newest.getVersion(), group);
            return step;
        });
    }

    /**
     * Writes the optimiser's state of the newest version, where that was published without it.
     *
     * @return the version's manifest, with the state
     * @throws dev.millrace.log.transaction.FencedWriterException if another learner has taken over
     * @throws KafkaException as {@link #commit}
     */
    public PolicyVersion commitState(PolicyVersion newest, AdamW.State optimizer) {
        PolicyVersion manifest = inTransaction(
                "the optimiser's state of version " + newest.getVersion(),
                out -> versions.writeState(newest, optimizer));
        checkpoints.published(manifest);
        return manifest;
    }

    /** Writes records that belong to no step, such as dead letters, on their own. */
    public void commit(String what, List<ProducerRecord<byte[], byte[]>> records) {
        inTransaction(what, out -> {
            records.forEach(out::send);
            return records;
        });
    }

    /**
     * Sets the batches whose steps are already on the training log, because their lost versions are trained again. A
     * step with the same weights is not written twice.
     */
    public void learntBefore(Map<Long, String> hashes) {
        learntBefore = Map.copyOf(hashes);
    }

    private void sendStep(Producer<byte[], byte[]> out, TrainingStep step, IncomingBatch batch) {
        if (step.getStarved() || !step.getWeightsSha256().equals(learntBefore.get(step.getBatchId()))) {
            out.send(new ProducerRecord<>(
                    trainingLog,
                    trainingLogPartition,
                    policyId.getBytes(StandardCharsets.UTF_8),
                    steps.serialize(trainingLog, step)));
        }
        batch.deadLetters().forEach(out::send);
    }

    private static void sendOffset(
            Producer<byte[], byte[]> out, IncomingBatch batch, long newestVersion, ConsumerGroupMetadata group) {
        out.sendOffsetsToTransaction(Map.of(batch.partition(), batch.committed(newestVersion)), group);
    }

    private <T> T inTransaction(String what, Function<Producer<byte[], byte[]>, T> work) {
        settle();
        return transact(what, work);
    }

    private <T> T transact(String what, Function<Producer<byte[], byte[]>, T> work) {
        try {
            return writer.compute(work);
        } catch (UncertainCommitException e) {
            throw new UncertainCommitException(
                    "the broker did not say whether " + what + " is committed; the next start finds out", e);
        }
    }

    /** A transaction that is being ended is waited for, though not for long. */
    @Override
    public void close() {
        thread.shutdown();
        try {
            if (!thread.awaitTermination(CLOSE_LIMIT_MS, TimeUnit.MILLISECONDS)) {
                LOG.warn(
                        "the last step's transaction did not end within {} ms; the next start finds out",
                        CLOSE_LIMIT_MS);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        writer.close(); // makes a transaction that hangs fail, so that the thread ends
    }

    /**
     * Decides which versions include the optimiser's state: the first of a run or an epoch, the last one planned, and
     * between them after a number of versions or a time.
     *
     * <p>The time bound exists because repeated steps need their batches and trajectories, which the log removes by
     * age. Used by one thread.
     */
    static final class CheckpointSchedule {
        private final WeightsConfig config;
        private long longestMs = Long.MAX_VALUE;
        private long lastStep = Long.MAX_VALUE;
        private long newest = -1;
        private long newestAtMs;

        CheckpointSchedule(WeightsConfig config) {
            this.config = config;
        }

        /**
         * @param newLongestMs longest time between two such versions, within which the log keeps everything written
         *     after the first
         * @param newLastStep last version of the run, so that a later resume can continue at once
         */
        void within(long newLongestMs, long newLastStep) {
            longestMs = newLongestMs;
            lastStep = newLastStep;
        }

        boolean isDue(VersionFacts facts, VersionSize size) {
            int every = config.checkpointEvery(size);
            if (facts.version() == 0) {
                return every == 1; // otherwise it is known to be zeros
            }
            if (facts.parentEpoch() != null) {
                return true; // a new epoch must not depend on records of an older one
            }
            return newest < 0
                    || facts.version() - newest >= every
                    || facts.version() >= lastStep
                    || facts.publishedAtMs() - newestAtMs >= longestMs;
        }

        void published(PolicyVersion manifest) {
            if (Checkpoints.is(manifest)) {
                newest = manifest.getVersion();
                newestAtMs = manifest.getPublishedAtMs();
            }
        }
    }
}
