package dev.millrace.cli.run;

import dev.millrace.generator.sampling.RolloutSampler;
import dev.millrace.log.LogConnection;
import dev.millrace.policy.session.Engine;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.ServerRole;
import dev.millrace.schemas.Serving;
import dev.millrace.schemas.registry.SchemaRegistry;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.weights.PolicyFeed;
import java.nio.charset.StandardCharsets;
import java.time.Clock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.UnaryOperator;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * What {@code clients/python/examples/generate.py} does, step by step, with Java's stock clients and a registry over HTTP. Weights
 * and sampling are by our own engine: the example has numpy for it.
 */
final class ForeignGenerator implements Runnable {
    private final String bootstrapServers;
    private final SchemaRegistry schemas;
    private final LogConnection connection;
    private final MillraceConfig config;
    private final RunIdentity run;
    private final String id;
    private final UnaryOperator<Rollout> said;
    private final long sinceMs = System.currentTimeMillis();
    private long tokens;
    private volatile boolean stopped;

    /**
     * @param schemas stays the caller's
     * @param said what it says of what it has sampled
     */
    ForeignGenerator(
            String bootstrapServers,
            SchemaRegistry schemas,
            LogConnection connection,
            MillraceConfig config,
            String id,
            UnaryOperator<Rollout> said) {
        this.bootstrapServers = bootstrapServers;
        this.schemas = schemas;
        this.connection = connection;
        this.config = config;
        this.run = config.run().identity();
        this.id = id;
        this.said = said;
    }

    void stop() {
        stopped = true;
    }

    @Override
    public void run() {
        try (PolicyFeed feed = new PolicyFeed(connection, config.weights());
                KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(
                        Map.of(
                                "bootstrap.servers",
                                bootstrapServers,
                                "transactional.id",
                                connection.scoped("generator-" + id),
                                "max.in.flight.requests.per.connection",
                                1),
                        new ByteArraySerializer(),
                        new ByteArraySerializer());
                KafkaConsumer<byte[], byte[]> prompts = new KafkaConsumer<>(
                        Map.of(
                                "bootstrap.servers",
                                bootstrapServers,
                                "group.id",
                                connection.group("generator"),
                                "isolation.level",
                                "read_committed",
                                "enable.auto.commit",
                                false,
                                "max.poll.records",
                                32,
                                "auto.offset.reset",
                                "earliest"),
                        new ByteArrayDeserializer(),
                        new ByteArrayDeserializer())) {
            producer.initTransactions();
            prompts.subscribe(List.of(connection.topics().prompts()));
            PolicyVersion first =
                    feed.awaitFirst(Duration.ofSeconds(300), () -> stopped).orElseThrow();
            try (RolloutSampler sampler = new RolloutSampler(
                    Engine.cpu(), PolicyFeed.shapeOf(first), config.served(), config.generator(), Clock.systemUTC())) {
                while (!stopped) {
                    ConsumerRecords<byte[], byte[]> records = prompts.poll(Duration.ofMillis(100));
                    sample(records, feed, sampler, producer, prompts);
                }
            }
        }
    }

    private void sample(
            ConsumerRecords<byte[], byte[]> records,
            PolicyFeed feed,
            RolloutSampler sampler,
            KafkaProducer<byte[], byte[]> producer,
            KafkaConsumer<byte[], byte[]> prompts) {
        if (records.isEmpty()) {
            return;
        }
        var read = AvroSerde.of(PromptRequest.class, schemas).deserializer();
        List<PromptRequest> requests = new ArrayList<>();
        Map<TopicPartition, OffsetAndMetadata> done = new HashMap<>();
        long admitted = 0;
        for (ConsumerRecord<byte[], byte[]> record : records) {
            PromptRequest request = read.deserialize(record.topic(), record.value());
            requests.add(request);
            admitted = Math.max(admitted, request.getAdmittedVersion());
            done.put(
                    new TopicPartition(record.topic(), record.partition()), new OffsetAndMetadata(record.offset() + 1));
        }
        feed.awaitAtLeast(
                admitted, Duration.ofSeconds(300)); // no prompt is begun with older weights than admission knew
        long version = feed.newestCommitted().orElseThrow().getVersion();
        List<Rollout> rollouts = sampler.sample(requests, feed.load(version), version);

        RunTopics topics = connection.topics();
        producer.beginTransaction();
        var writeRollout = AvroSerde.of(Rollout.class, schemas).serializer();
        for (Rollout rollout : rollouts) {
            rollout = said.apply(Rollout.newBuilder(rollout).setGeneratorId(id).build());
            tokens += rollout.getMask().remaining();
            producer.send(new ProducerRecord<>(
                    topics.rollouts(),
                    rollout.getGroupId().getBytes(StandardCharsets.UTF_8),
                    writeRollout.serialize(topics.rollouts(), rollout)));
        }
        Serving serving = Serving.newBuilder()
                .setRunId(run.runId())
                .setEpoch(run.epoch())
                .setServerId(id)
                .setRole(ServerRole.GENERATOR)
                .setPolicyId(run.policyId())
                .setVersion(version)
                .setSinceMs(sinceMs)
                .setHeartbeatMs(System.currentTimeMillis())
                .setTokens(tokens)
                .build();
        producer.send(new ProducerRecord<>(
                topics.serving(),
                (id + "/" + run.epoch()).getBytes(StandardCharsets.UTF_8),
                AvroSerde.of(Serving.class, schemas).serializer().serialize(topics.serving(), serving)));
        producer.sendOffsetsToTransaction(done, prompts.groupMetadata());
        producer.commitTransaction();
    }
}
