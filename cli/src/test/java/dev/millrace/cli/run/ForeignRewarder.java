package dev.millrace.cli.run;

import dev.millrace.schemas.LogCoordinates;
import dev.millrace.schemas.Reward;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.serde.AvroSerde;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** What {@code infra/examples/reward/reward.py} does, step by step, with Java's stock clients and a registry over HTTP. */
final class ForeignRewarder implements Runnable {
    private static final String PREFIX = "millrace.";

    private final String bootstrapServers;
    private final String registry;
    private final RunIdentity run;
    private final String id;
    private volatile boolean stopped;

    ForeignRewarder(String bootstrapServers, String registry, RunIdentity run, String id) {
        this.bootstrapServers = bootstrapServers;
        this.registry = registry;
        this.run = run;
        this.id = id;
    }

    void stop() {
        stopped = true;
    }

    @Override
    public void run() {
        try (LatestSchemas schemas = new LatestSchemas(registry);
                KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(
                        Map.of(
                                "bootstrap.servers",
                                bootstrapServers,
                                "transactional.id",
                                PREFIX + "rewarder-" + id,
                                "max.in.flight.requests.per.connection",
                                1),
                        new ByteArraySerializer(),
                        new ByteArraySerializer());
                KafkaConsumer<byte[], byte[]> rollouts = new KafkaConsumer<>(
                        Map.of(
                                "bootstrap.servers",
                                bootstrapServers,
                                "group.id",
                                PREFIX + "rewarder",
                                "isolation.level",
                                "read_committed",
                                "enable.auto.commit",
                                false,
                                "auto.offset.reset",
                                "earliest"),
                        new ByteArrayDeserializer(),
                        new ByteArrayDeserializer())) {
            producer.initTransactions();
            rollouts.subscribe(List.of(PREFIX + "rollouts"));
            var read = AvroSerde.of(Rollout.class, schemas).deserializer();
            var write = AvroSerde.of(Reward.class, schemas).serializer();
            while (!stopped) {
                ConsumerRecords<byte[], byte[]> records = rollouts.poll(Duration.ofMillis(200));
                if (records.isEmpty()) {
                    continue;
                }
                producer.beginTransaction();
                Map<TopicPartition, OffsetAndMetadata> done = new HashMap<>();
                for (ConsumerRecord<byte[], byte[]> record : records) {
                    done.put(
                            new TopicPartition(record.topic(), record.partition()),
                            new OffsetAndMetadata(record.offset() + 1));
                    Rollout rollout = read.deserialize(record.topic(), record.value());
                    if (!rollout.getRunId().equals(run.runId()) || rollout.getEpoch() != run.epoch()) {
                        continue;
                    }
                    double reward = ForeignPartnersIT.judged(rollout);
                    Reward judged = Reward.newBuilder()
                            .setRunId(run.runId())
                            .setEpoch(run.epoch())
                            .setRolloutId(rollout.getRolloutId())
                            .setGroupId(rollout.getGroupId())
                            .setRewarderId(id)
                            .setRolloutSource(new LogCoordinates(record.topic(), record.partition(), record.offset()))
                            .setReward(reward)
                            .setRewardComponents(
                                    Map.of("environment", rollout.getReward(), "variety", reward - rollout.getReward()))
                            .setScoredAtMs(System.currentTimeMillis())
                            .build();
                    producer.send(new ProducerRecord<>(
                            PREFIX + "rewards",
                            rollout.getGroupId().getBytes(StandardCharsets.UTF_8),
                            write.serialize(PREFIX + "rewards", judged)));
                }
                producer.sendOffsetsToTransaction(done, rollouts.groupMetadata());
                producer.commitTransaction();
            }
        }
    }
}
