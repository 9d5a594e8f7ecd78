package dev.millrace.generator.staleness;

import dev.millrace.log.LogConnection;
import dev.millrace.log.follow.LogReader;
import dev.millrace.log.transaction.FencedWriterException;
import dev.millrace.log.transaction.TransactionalWriter;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.serde.AvroSerde;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Serializer;

/**
 * Admission's side of the log: writes prompts, reads outcomes, dead letters and the training log, and keeps the state that joins them.
 *
 * <p>Prompts and state are committed in one transaction, so none is released twice and none is counted that was not
 * released. A second admission of the same run fences the first by its transactional id. Owned by one thread, except
 * {@link #wakeup()}.
 */
final class ControllerLog implements AutoCloseable {
    private static final int TRANSACTION_TIMEOUT_MS = 30_000;

    private final LogConnection connection;
    private final LogReader log;
    private final TransactionalWriter writer;
    private final Serializer<PromptRequest> prompts;
    private final List<TopicPartition> followed;

    ControllerLog(LogConnection connection) {
        this.connection = connection;
        String group = connection.scoped("admission-" + connection.run().epoch());
        this.log = new LogReader(connection, Map.of("group.id", group, "client.id", "admission"));
        this.writer = TransactionalWriter.of(
                connection,
                group,
                TRANSACTION_TIMEOUT_MS,
                Map.of("client.id", "admission", "compression.type", "lz4", "linger.ms", 0));
        this.prompts = AvroSerde.of(PromptRequest.class, connection.registry()).serializer();
        this.followed = new ArrayList<>(log.partitionsOf(connection.topics().outcomes()));
        followed.addAll(log.partitionsOf(connection.topics().deadLetters()));
        followed.addAll(log.partitionsOf(connection.topics().trainingLog()));
    }

    /**
     * The state that the last admission of this run and epoch left, or a fresh one; from here on, {@link #poll} gives
     * what was written to outcomes, dead letters and training log after it.
     *
     * @param consumedSamples what the policy has consumed so far, from which a fresh admission counts on
     * @throws IllegalStateException if there was one whose state is gone
     */
    ControllerState recover(long consumedSamples) {
        writer.fenceOthers(); // before reading: whatever a predecessor left open is aborted by this
        Consumer<byte[], byte[]> consumer = log.consumer();
        consumer.assign(followed);
        Map<TopicPartition, OffsetAndMetadata> committed = consumer.committed(Set.copyOf(followed));
        ControllerState state = null;
        for (TopicPartition partition : followed) {
            OffsetAndMetadata kept = committed.get(partition);
            if (kept == null) {
                consumer.seekToBeginning(List.of(partition));
            } else {
                consumer.seek(partition, kept.offset());
                state = ControllerState.parse(kept.metadata());
            }
        }
        if (state != null) {
            return state;
        }
        List<TopicPartition> losses = followed.stream()
                .filter(partition ->
                        !partition.topic().equals(connection.topics().trainingLog()))
                .toList();
        boolean complete = consumer.beginningOffsets(losses).values().stream().allMatch(first -> first == 0);
        return PriorPrompts.read(connection).state(consumedSamples, complete);
    }

    ConsumerRecords<byte[], byte[]> poll(Duration limit) {
        return log.consumer().poll(limit);
    }

    /**
     * Writes prompts and the state that counts them, both or neither.
     *
     * @throws IllegalStateException if another admission has taken over
     * @throws KafkaException if they could not be committed otherwise; this log is then of no more use
     */
    void release(List<PromptRequest> released, ControllerState state) {
        String topic = connection.topics().prompts();
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        for (TopicPartition partition : followed) {
            offsets.put(partition, new OffsetAndMetadata(log.position(partition), state.text()));
        }
        try {
            writer.write(out -> {
                for (PromptRequest prompt : released) {
                    out.send(new ProducerRecord<>(
                            topic,
                            prompt.getGroupId().getBytes(StandardCharsets.UTF_8),
                            prompts.serialize(topic, prompt)));
                }
                out.sendOffsetsToTransaction(offsets, log.consumer().groupMetadata());
            });
        } catch (FencedWriterException e) {
            throw new IllegalStateException(
                    "another admission of the run has taken over (there is one per run), or the"
                            + " broker gave up a transaction after " + TRANSACTION_TIMEOUT_MS + " ms: "
                            + e.getMessage(),
                    e);
        }
    }

    void wakeup() {
        log.wakeup();
    }

    @Override
    public void close() {
        writer.close();
        log.close();
    }
}
