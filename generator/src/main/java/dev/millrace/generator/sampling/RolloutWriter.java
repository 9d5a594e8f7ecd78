package dev.millrace.generator.sampling;

import dev.millrace.log.LogConnection;
import dev.millrace.log.transaction.FencedWriterException;
import dev.millrace.log.transaction.TransactionalWriter;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.Serving;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.schemas.run.ServerKey;
import dev.millrace.schemas.serde.AvroSerde;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Serializer;
import org.jspecify.annotations.Nullable;

/**
 * Commits what the sampling thread has finished, on a thread of its own, so that sampling goes on meanwhile.
 *
 * <p>One transaction at a time holds rollouts, dead letters, the serving record and the offsets of the prompts they
 * answer: all of it or nothing. Rewards are verified here, too.
 */
final class RolloutWriter implements AutoCloseable {
    private static final int TRANSACTION_TIMEOUT_MS = 30_000;

    /** A rollout and when its last token was there. */
    record Finished(RunningSequence sequence, long atMs) {}

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
    private final GeneratorConfig config;
    private final RolloutRecords records;
    private final Serializer<Rollout> rollouts;
    private final Serializer<Serving> servings;
    private final TransactionalWriter writer;
    private final ExecutorService thread;
    private final GeneratorMeters meters;
    private CompletableFuture<Optional<Work>> running = CompletableFuture.completedFuture(Optional.empty());

    RolloutWriter(LogConnection connection, GeneratorConfig config, GeneratorMeters meters) {
        this.topics = connection.topics();
        this.run = connection.run();
        this.config = config;
        this.records = new RolloutRecords(config.id());
        this.rollouts = AvroSerde.of(Rollout.class, connection.registry()).serializer();
        this.servings = AvroSerde.of(Serving.class, connection.registry()).serializer();
        this.writer = TransactionalWriter.of(
                connection,
                connection.scoped("generator-" + config.id()),
                TRANSACTION_TIMEOUT_MS,
                Map.of(
                        "client.id",
                        "generator-" + config.id(),
                        "max.block.ms",
                        config.commitTimeoutMs(),
                        "compression.type",
                        "lz4",
                        "linger.ms",
                        0));
        this.thread = Executors.newSingleThreadExecutor(task -> {
            Thread committing = new Thread(task, "rollout-writer-" + config.id());
            committing.setDaemon(true); // a transaction cut short by the end of the process is aborted by the broker
            return committing;
        });
        this.meters = meters;
    }

    /** Aborts what a predecessor of the same id left open, and shuts it out. */
    void fenceOthers() {
        writer.fenceOthers();
    }

    /** True while a transaction is under way. */
    boolean isBusy() {
        return !running.isDone();
    }

    /** Begins a transaction; none may be under way. */
    void submit(Work work) {
        running = CompletableFuture.supplyAsync(() -> commit(work), thread);
    }

    /**
     * Waits until the transaction that was submitted last has ended, if any.
     *
     * @return what it held, if the group had moved on to another generation in the meantime and took no offsets of the
     *     old one, so that nothing of it was written; told once
     * @throws RuntimeException if it failed otherwise, or did not end within {@code commit_timeout_ms}
     */
    Optional<Work> await() {
        try {
            Optional<Work> notWritten = running.get(config.commitTimeoutMs(), TimeUnit.MILLISECONDS);
            running = CompletableFuture.completedFuture(Optional.empty());
            return notWritten;
        } catch (ExecutionException e) {
            throw e.getCause() instanceof RuntimeException cause ? cause : new IllegalStateException(e.getCause());
        } catch (TimeoutException e) {
            throw new IllegalStateException(
                    "rollouts could not be committed within " + config.commitTimeoutMs() + " ms (commit_timeout_ms)",
                    e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted while waiting for a commit", e);
        }
    }

    private Optional<Work> commit(Work work) {
        try {
            writer.write(out -> write(work, out));
        } catch (CommitFailedException e) {
            return Optional.of(work);
        } catch (FencedWriterException e) {
            throw new IllegalStateException(
                    "another generator with the id " + config.id() + " has taken over (every"
                            + " generator of a run needs an id of its own), or the broker gave up a transaction after "
                            + TRANSACTION_TIMEOUT_MS + " ms: " + e.getMessage(),
                    e);
        }
        meters.committed(work);
        return Optional.empty();
    }

    private void write(Work work, Producer<byte[], byte[]> out) {
        for (Finished finished : work.rollouts()) {
            Rollout rollout = records.of(finished.sequence(), finished.atMs());
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
