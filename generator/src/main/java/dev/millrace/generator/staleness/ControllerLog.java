package dev.millrace.generator.staleness;

import dev.millrace.log.LogConnection;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.serde.AvroSerde;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InvalidProducerEpochException;
import org.apache.kafka.common.errors.InvalidTxnStateException;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Admission's side of the log: writes prompts, reads outcomes and dead letters, and keeps the state that joins them.
 *
 * <p>Prompts and state are committed in one transaction, so none is released twice and none is counted that was not
 * released. A second admission of the same run fences the first by its transactional id. Owned by one thread, except
 * {@link #wakeup()}.
 */
final class ControllerLog implements AutoCloseable {
    private static final int TRANSACTION_TIMEOUT_MS = 30_000;
    private static final Duration CLOSE_LIMIT = Duration.ofSeconds(5);

    private final LogConnection connection;
    private final KafkaConsumer<byte[], byte[]> consumer;
    private final KafkaProducer<String, PromptRequest> producer;
    private final List<TopicPartition> followed;

    ControllerLog(LogConnection connection) {
        this.connection = connection;
        String group = connection.scoped("admission-" + connection.run().epoch());
        this.consumer = new KafkaConsumer<>(
                connection.consumer(Map.of(
                        "group.id", group,
                        "client.id", "admission",
                        "isolation.level", "read_committed",
                        "auto.offset.reset", "earliest",
                        "enable.auto.commit", false)),
                new ByteArrayDeserializer(),
                new ByteArrayDeserializer());
        this.producer = new KafkaProducer<>(
                connection.producer(Map.of(
                        "transactional.id",
                        group,
                        "transaction.timeout.ms",
                        TRANSACTION_TIMEOUT_MS,
                        "client.id",
                        "admission",
                        "compression.type",
                        "lz4",
                        "linger.ms",
                        0)),
                new StringSerializer(),
                AvroSerde.of(PromptRequest.class, connection.registry()).serializer());
        this.followed = new ArrayList<>(partitionsOf(connection.topics().outcomes()));
        followed.addAll(partitionsOf(connection.topics().deadLetters()));
    }

    /**
     * The state that the last admission of this run and epoch left, or a fresh one; from here on, {@link #poll} gives
     * what was written to outcomes and dead letters after it.
     *
     * @param consumedSamples what the policy has consumed so far, from which a fresh admission counts on
     * @throws IllegalStateException if there was one whose state is gone
     */
    ControllerState recover(long consumedSamples) {
        producer.initTransactions(); // before reading: whatever a predecessor left open is aborted by this
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
        boolean complete = consumer.beginningOffsets(followed).values().stream().allMatch(first -> first == 0);
        return PriorPrompts.read(connection, partitionsOf(connection.topics().prompts()))
                .state(consumedSamples, complete);
    }

    ConsumerRecords<byte[], byte[]> poll(Duration limit) {
        return consumer.poll(limit);
    }

    /**
     * Writes prompts and the state that counts them, both or neither.
     *
     * @throws IllegalStateException if another admission has taken over
     * @throws KafkaException if they could not be committed otherwise; this log is then of no more use
     */
    void release(List<PromptRequest> prompts, ControllerState state) {
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        for (TopicPartition partition : followed) {
            offsets.put(partition, new OffsetAndMetadata(consumer.position(partition), state.text()));
        }
        try {
            producer.beginTransaction();
            for (PromptRequest prompt : prompts) {
                producer.send(new ProducerRecord<>(connection.topics().prompts(), prompt.getGroupId(), prompt));
            }
            producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
            producer.commitTransaction(); // throws if any send failed
        } catch (ProducerFencedException | InvalidProducerEpochException | InvalidTxnStateException e) {
            throw new IllegalStateException(
                    "another admission of the run has taken over (there is one per run), or the"
                            + " broker gave up a transaction after " + TRANSACTION_TIMEOUT_MS + " ms: "
                            + e.getMessage(),
                    e);
        }
    }

    void wakeup() {
        consumer.wakeup();
    }

    @Override
    public void close() {
        producer.close(CLOSE_LIMIT);
        consumer.close(CloseOptions.timeout(Duration.ZERO)); // no member of its group: only a fetch would be waited for
    }

    private List<TopicPartition> partitionsOf(String topic) {
        List<PartitionInfo> found = consumer.partitionsFor(topic);
        if (found == null || found.isEmpty()) {
            throw new IllegalStateException(
                    "topic " + topic + " does not exist; creating the run's topics comes first");
        }
        return found.stream()
                .map(info -> new TopicPartition(topic, info.partition()))
                .toList();
    }
}
