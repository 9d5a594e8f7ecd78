package dev.millrace.workloads;

import dev.millrace.log.LogConnection;
import dev.millrace.replay.archive.RecordCursor;
import dev.millrace.replay.archive.RecordedRun;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.LogCoordinates;
import dev.millrace.schemas.Outcome;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.TrainingStep;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.workloads.topology.LoadException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.LongConsumer;
import org.apache.avro.specific.SpecificRecord;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.serialization.Serializer;

/**
 * Writes a recorded run to another one's empty topics repeatedly. Each copy has its own names, batches, versions and
 * references. Copies prompts, rollouts, trajectories, outcomes, steps and batches with a step; not weights. Used by
 * one thread.
 */
public final class RepeatedRun {
    private final RecordedRun recorded;
    private final LogConnection to;
    /** Decoded records with their offsets in the first copy. */
    private final List<Copied> records = new ArrayList<>();

    private final Map<Class<?>, Serializer<?>> serializers = new HashMap<>();
    private final Map<TopicPartition, Map<Long, Long>> places = new HashMap<>();
    private long batches;
    private long versions;
    private long rollouts;
    private long prompts;

    private record Copied(TopicPartition at, SpecificRecord record) {}

    public RepeatedRun(RecordedRun recorded, LogConnection to) {
        this.recorded = recorded;
        this.to = to;
    }

    /**
     * @param said receives the rollout count after each hundred copies
     * @return rollouts written
     */
    public long write(long copies, LongConsumer said) throws InterruptedException {
        read();
        AtomicReference<Exception> failure = new AtomicReference<>();
        Map<String, Object> settings = Map.of(
                ProducerConfig.ACKS_CONFIG,
                "all",
                ProducerConfig.LINGER_MS_CONFIG,
                20,
                ProducerConfig.BATCH_SIZE_CONFIG,
                256 << 10,
                ProducerConfig.COMPRESSION_TYPE_CONFIG,
                "lz4");
        try (Producer<byte[], byte[]> producer =
                new KafkaProducer<>(to.producer(settings), new ByteArraySerializer(), new ByteArraySerializer())) {
            for (long copy = 0; copy < copies; copy++) {
                for (Copied each : records) {
                    producer.send(record(each, copy), (at, failed) -> {
                        if (failed != null) {
                            failure.compareAndSet(null, failed);
                        }
                    });
                }
                if (failure.get() != null) {
                    throw new LoadException(
                            "a copy could not be written: " + failure.get().getMessage(), failure.get());
                }
                if ((copy + 1) % 100 == 0) {
                    said.accept((copy + 1) * rollouts);
                }
            }
            producer.flush();
        }
        return copies * rollouts;
    }

    private void read() {
        RunTopics topics = recorded.topics();
        batches = read(topics.trainingLog(), TrainingStep.class);
        versions = batches;
        prompts = read(topics.prompts(), PromptRequest.class);
        rollouts = read(topics.rollouts(), Rollout.class);
        read(topics.trajectories(), Trajectory.class);
        read(topics.outcomes(), Outcome.class);
        read(topics.batches(), LearnerBatch.class);
    }

    private <T extends SpecificRecord> long read(String topic, Class<T> type) {
        long count = 0;
        Deserializer<T> deserializer = AvroSerde.of(type, recorded.registry()).deserializer();
        for (TopicPartition partition : recorded.partitions(topic)) {
            Map<Long, Long> dense = places.computeIfAbsent(partition, unseen -> new HashMap<>());
            try (RecordCursor cursor =
                    recorded.read(partition, recorded.range(partition).from())) {
                for (Optional<ConsumerRecord<byte[], byte[]>> next = cursor.next();
                        next.isPresent();
                        next = cursor.next()) {
                    T record = deserializer.deserialize(topic, next.get().value());
                    if (record instanceof LearnerBatch batch && batch.getBatchId() >= batches) {
                        continue; // the run ended before its step
                    }
                    dense.put(next.get().offset(), (long) dense.size());
                    records.add(new Copied(partition, record));
                    count++;
                }
            }
        }
        return count;
    }

    private ProducerRecord<byte[], byte[]> record(Copied each, long copy) {
        RunTopics from = recorded.topics();
        String topic =
                to.topics().prefix() + each.at().topic().substring(from.prefix().length());
        byte[] key = ("copy " + copy).getBytes(StandardCharsets.UTF_8);
        return new ProducerRecord<>(topic, each.at().partition(), key, encoded(topic, copied(each.record(), copy)));
    }

    private SpecificRecord copied(SpecificRecord record, long copy) {
        if (record instanceof PromptRequest prompt) {
            return PromptRequest.newBuilder(prompt)
                    .setGroupId(name(prompt.getGroupId(), copy))
                    .setOrdinal(prompt.getOrdinal() + copy * prompts)
                    .build();
        }
        if (record instanceof Rollout rollout) {
            return Rollout.newBuilder(rollout)
                    .setRolloutId(name(rollout.getRolloutId(), copy))
                    .setGroupId(name(rollout.getGroupId(), copy))
                    .setOrdinal(rollout.getOrdinal() + copy * prompts)
                    .build();
        }
        if (record instanceof Trajectory trajectory) {
            return Trajectory.newBuilder(trajectory)
                    .setRolloutId(name(trajectory.getRolloutId(), copy))
                    .setGroupId(name(trajectory.getGroupId(), copy))
                    .setOrdinal(trajectory.getOrdinal() + copy * prompts)
                    .setRolloutSource(place(trajectory.getRolloutSource(), copy))
                    .build();
        }
        if (record instanceof Outcome outcome) {
            return Outcome.newBuilder(outcome)
                    .setRolloutId(name(outcome.getRolloutId(), copy))
                    .setGroupId(name(outcome.getGroupId(), copy))
                    .setSource(place(outcome.getSource(), copy))
                    .build();
        }
        if (record instanceof LearnerBatch batch) {
            return copied(batch, copy);
        }
        TrainingStep step = (TrainingStep) record;
        return TrainingStep.newBuilder(step)
                .setBatchId(step.getBatchId() + copy * batches)
                .setVersion(step.getVersion() + copy * versions)
                .build();
    }

    private LearnerBatch copied(LearnerBatch batch, long copy) {
        RunTopics from = recorded.topics();
        return LearnerBatch.newBuilder(batch)
                .setBatchId(batch.getBatchId() + copy * batches)
                .setAssembledVersion(batch.getAssembledVersion() + copy * versions)
                .setExpectedVersion(batch.getExpectedVersion() + copy * versions)
                .setEntries(batch.getEntries().stream()
                        .map(entry -> BatchEntry.newBuilder(entry)
                                .setRolloutId(name(entry.getRolloutId(), copy))
                                .setGroupId(name(entry.getGroupId(), copy))
                                .setOldestVersion(entry.getOldestVersion() + copy * versions)
                                .setOffset(offset(from.trajectories(), entry.getPartition(), entry.getOffset(), copy))
                                .setRolloutOffset(offset(
                                        from.rollouts(), entry.getRolloutPartition(), entry.getRolloutOffset(), copy))
                                .build())
                        .toList())
                .build();
    }

    private static String name(String recorded, long copy) {
        return copy + "-" + recorded;
    }

    private LogCoordinates place(LogCoordinates of, long copy) {
        String topic = recorded.topics().prefix().length() <= of.getTopic().length()
                ? to.topics().prefix()
                        + of.getTopic().substring(recorded.topics().prefix().length())
                : of.getTopic();
        return new LogCoordinates(
                topic, of.getPartition(), offset(of.getTopic(), of.getPartition(), of.getOffset(), copy));
    }

    private long offset(String topic, int partition, long offset, long copy) {
        Map<Long, Long> dense = places.getOrDefault(new TopicPartition(topic, partition), Map.of());
        return dense.getOrDefault(offset, 0L) + copy * dense.size();
    }

    @SuppressWarnings("unchecked") // by class
    private <T extends SpecificRecord> byte[] encoded(String topic, T record) {
        Serializer<?> serializer = serializers.computeIfAbsent(
                record.getClass(),
                type -> AvroSerde.of((Class<T>) type, to.registry()).serializer());
        return ((Serializer<T>) serializer).serialize(topic, record);
    }
}
