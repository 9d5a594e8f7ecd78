package dev.millrace.generator.sampling;

import dev.millrace.log.LogConnection;
import dev.millrace.log.transaction.TransactionalWriter;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.Sampler;
import dev.millrace.schemas.Serving;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.schemas.run.ServerKey;
import dev.millrace.schemas.serde.AvroSerde;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.BooleanSupplier;
import java.util.function.Predicate;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Serializer;
import org.jspecify.annotations.Nullable;

/**
 * Commits finished rollouts on a thread of its own.
 *
 * <p>One transaction at a time holds rollouts, dead letters, the serving record and prompt offsets. Rewards are
 * verified here, too.
 */
final class RolloutWriter implements AutoCloseable {
    private static final int TRANSACTION_TIMEOUT_MS = 30_000;

    /**
     * A rollout and when its last token was there.
     *
     * @param sampler who sampled it, where that is another than the generator's own engine
     */
    record Finished(
            RunningSequence sequence, long atMs, @Nullable Sampler sampler) {
        Finished(RunningSequence sequence, long atMs) {
            this(sequence, atMs, null);
        }
    }

    /**
     * What one transaction holds.
     *
     * @param serving may be null
     * @param offsets may be empty
     */
    record Work(
            List<Finished> rollouts,
            List<RefusedPrompt> refused,
            @Nullable Serving serving,
            Map<TopicPartition, OffsetAndMetadata> offsets,
            ConsumerGroupMetadata group) {}

    private final RunTopics topics;
    private final RunIdentity run;
    private final RolloutRecords records;
    private final Serializer<Rollout> rollouts;
    private final Serializer<Serving> servings;
    private final TransactionalWriter writer;
    private final ExecutorService thread;
    private final GeneratorMeters meters;
    private final Duration patience;
    private final String markPrefix = UUID.randomUUID() + "/";
    private long marks;
    private BooleanSupplier stopped = () -> false;
    private @Nullable Work submitted;
    private CompletableFuture<Optional<Work>> running = CompletableFuture.completedFuture(Optional.empty());

    RolloutWriter(LogConnection connection, GeneratorConfig config, GeneratorMeters meters) {
        this.topics = connection.topics();
        this.run = connection.run();
        this.records = new RolloutRecords(config.id());
        this.rollouts = AvroSerde.of(Rollout.class, connection.registry()).serializer();
        this.servings = AvroSerde.of(Serving.class, connection.registry()).serializer();
        this.writer = TransactionalWriter.of(
                connection,
                connection.scoped("generator-" + config.id()),
                TRANSACTION_TIMEOUT_MS,
                Map.of("client.id", "generator-" + config.id(), "max.block.ms", config.commitTimeoutMs()));
        this.thread = Executors.newSingleThreadExecutor(task -> {
            Thread committing = new Thread(task, "rollout-writer-" + config.id());
            committing.setDaemon(true); // a transaction cut short by the end of the process is aborted by the broker
            return committing;
        });
        this.meters = meters;
        this.patience = connection.patience();
    }

    /**
     * Aborts the open transaction of a predecessor of the same id and fences it.
     *
     * @return false if it was stopped before that
     */
    boolean takeOver(BooleanSupplier isStopped) {
        stopped = isStopped;
        return writer.takeOver(isStopped, () -> {});
    }

    /** Unlike any other of a transaction's offsets. */
    String nextMark() {
        return markPrefix + marks++;
    }

    /** True while a transaction is under way. */
    boolean isBusy() {
        return !running.isDone();
    }

    /** Begins a transaction; none may be under way. */
    void submit(Work work) {
        submitted = work;
        running = CompletableFuture.supplyAsync(() -> commit(work), thread);
    }

    /**
     * Waits for the end of the last submitted transaction, if any, and retries after a recoverable failure.
     *
     * @param isCommitted reads from the log whether offsets are committed
     * @return the transaction's content if nothing of it was written, since the group moved on or the log refused it;
     *     returned once
     * @throws RuntimeException on a fatal failure, or after the run's patience
     */
    Optional<Work> await(Predicate<Map<TopicPartition, OffsetAndMetadata>> isCommitted) {
        try {
            Optional<Work> notWritten = running.get(patience.toMillis(), TimeUnit.MILLISECONDS);
            running = CompletableFuture.completedFuture(Optional.empty());
            return notWritten;
        } catch (ExecutionException e) {
            running = CompletableFuture.completedFuture(Optional.empty());
            if (e.getCause() instanceof RuntimeException failure) {
                return recovered(failure, Objects.requireNonNull(submitted), isCommitted);
            }
            throw new IllegalStateException(e.getCause());
        } catch (TimeoutException e) {
            throw new IllegalStateException(
                    "rollouts could not be committed within " + patience.toSeconds() + " s (run.patience_seconds)", e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted while waiting for a commit", e);
        }
    }

    private Optional<Work> recovered(
            RuntimeException failure, Work work, Predicate<Map<TopicPartition, OffsetAndMetadata>> isCommitted) {
        boolean[] committed = {false};
        writer.recover(failure, stopped, () -> committed[0] = isCommitted.test(work.offsets()));
        if (!committed[0]) {
            return Optional.of(work);
        }
        meters.committed(work);
        return Optional.empty();
    }

    private Optional<Work> commit(Work work) {
        try {
            writer.write(out -> write(work, out));
        } catch (CommitFailedException e) {
            return Optional.of(work);
        }
        meters.committed(work);
        return Optional.empty();
    }

    private void write(Work work, Producer<byte[], byte[]> out) {
        for (Finished finished : work.rollouts()) {
            Rollout rollout = records.of(finished.sequence(), finished.atMs(), finished.sampler());
            send(out, topics.rollouts(), rollout.getGroupId(), rollouts.serialize(topics.rollouts(), rollout));
        }
        for (RefusedPrompt refused : work.refused()) {
            out.send(refused.deadLetter(run, topics.deadLetters()));
        }
        if (work.serving() != null) {
            out.send(new ProducerRecord<>(
                    topics.serving(),
                    ServerKey.of(work.serving()),
                    servings.serialize(topics.serving(), work.serving())));
        }
        if (!work.offsets().isEmpty()) {
            out.sendOffsetsToTransaction(work.offsets(), work.group());
        }
    }

    private static void send(Producer<byte[], byte[]> out, String topic, String key, byte[] value) {
        out.send(new ProducerRecord<>(topic, key.getBytes(StandardCharsets.UTF_8), value));
    }

    @Override
    public void close() {
        thread.shutdown();
        writer.close(); // makes a transaction that hangs fail, so that the thread ends
    }
}
