package dev.millrace.gateway;

import dev.millrace.generator.sampling.GeneratorConfig;
import dev.millrace.generator.sampling.RefusedPrompt;
import dev.millrace.log.LogConnection;
import dev.millrace.log.transaction.TransactionalWriter;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.Serving;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.schemas.run.ServerKey;
import dev.millrace.schemas.serde.AvroSerde;
import java.nio.charset.StandardCharsets;
import java.time.Clock;
import java.util.List;
import java.util.Map;
import java.util.UUID;
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
 * Writes ended sessions in one transaction: rollouts, end records, dead letters, serving records, and offsets of
 * finished prompts. Owned by the role's thread, except {@link #close()}.
 */
final class EndWriter implements AutoCloseable {
    private static final int TRANSACTION_TIMEOUT_MS = 30_000;

    private final RunTopics topics;
    private final RunIdentity run;
    private final Serializer<Rollout> rollouts;
    private final Serializer<Serving> servings;
    private final SessionLog log;
    private final TransactionalWriter writer;
    private final Clock clock;
    private final String markPrefix = UUID.randomUUID() + "/";
    private long marks;

    EndWriter(LogConnection connection, GeneratorConfig config, SessionLog log, Clock clock) {
        this.topics = connection.topics();
        this.run = connection.run();
        this.log = log;
        this.clock = clock;
        this.rollouts = AvroSerde.of(Rollout.class, connection.registry()).serializer();
        this.servings = AvroSerde.of(Serving.class, connection.registry()).serializer();
        this.writer = TransactionalWriter.of(
                connection,
                connection.scoped("generator-" + config.id()),
                TRANSACTION_TIMEOUT_MS,
                Map.of("client.id", "gateway-ends-" + config.id(), "max.block.ms", config.commitTimeoutMs()));
    }

    /** Fences a predecessor of the same id; false if stopped first. */
    boolean takeOver(BooleanSupplier isStopped) {
        return writer.takeOver(isStopped, () -> {});
    }

    /** Unique in the metadata of a transaction's offsets. */
    String nextMark() {
        return markPrefix + marks++;
    }

    /**
     * Writes one transaction.
     *
     * @param isCommitted reads from the log whether offsets are committed
     * @return false if nothing was written: the group moved on, or the log refused it
     * @throws RuntimeException on a fatal failure, or after the run's patience
     */
    boolean write(
            List<SessionEnding> ends,
            List<RefusedPrompt> refused,
            @Nullable Serving serving,
            Map<TopicPartition, OffsetAndMetadata> offsets,
            ConsumerGroupMetadata group,
            BooleanSupplier isStopped,
            Predicate<Map<TopicPartition, OffsetAndMetadata>> isCommitted) {
        try {
            writer.write(out -> {
                send(out, ends);
                refused.forEach(each -> out.send(each.deadLetter(run, topics.deadLetters())));
                if (serving != null) {
                    out.send(new ProducerRecord<>(
                            topics.serving(), ServerKey.of(serving), servings.serialize(topics.serving(), serving)));
                }
                if (!offsets.isEmpty()) {
                    out.sendOffsetsToTransaction(offsets, group);
                }
            });
            return true;
        } catch (CommitFailedException e) {
            return false;
        } catch (RuntimeException failure) {
            boolean[] committed = {false};
            writer.recover(failure, isStopped, () -> committed[0] = isCommitted.test(offsets));
            return committed[0];
        }
    }

    private void send(Producer<byte[], byte[]> out, List<SessionEnding> ends) {
        for (SessionEnding end : ends) {
            Rollout rollout = end.rollout();
            if (rollout != null) {
                send(out, rollout);
            }
            for (SessionEnding.BranchEnding branch : end.branches()) {
                send(out, branch.rollout());
                out.send(log.ended(end, branch, clock.millis()));
            }
            out.send(log.ended(end, clock.millis())); // last, since it is what a repeated call is answered with
        }
    }

    private void send(Producer<byte[], byte[]> out, Rollout rollout) {
        out.send(new ProducerRecord<>(
                topics.rollouts(),
                rollout.getGroupId().getBytes(StandardCharsets.UTF_8),
                rollouts.serialize(topics.rollouts(), rollout)));
    }

    @Override
    public void close() {
        writer.close();
    }
}
