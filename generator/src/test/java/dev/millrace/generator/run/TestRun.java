package dev.millrace.generator.run;

import dev.millrace.generator.environment.Symbols;
import dev.millrace.infra.broker.EmbeddedBroker;
import dev.millrace.log.LogConnection;
import dev.millrace.log.run.RunLog;
import dev.millrace.log.run.TopicsConfig;
import dev.millrace.policy.autodiff.AdamW;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.weights.TensorSet;
import dev.millrace.policy.weights.Weights;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.weights.PolicyFeed;
import dev.millrace.weights.VersionFacts;
import dev.millrace.weights.VersionWriter;
import dev.millrace.weights.WeightsConfig;
import java.nio.charset.StandardCharsets;
import java.time.Clock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.function.Predicate;
import org.apache.avro.specific.SpecificRecord;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.jspecify.annotations.Nullable;

/** A run on a real broker: what a test writes into it, and what it finds there. */
public final class TestRun implements AutoCloseable {
    public static final DecoderShape SHAPE = new DecoderShape(16, 32, 2, 4, 2, 8, 48, 64, 100, 1e-6, false, false);
    private static final Duration LIMIT = Duration.ofSeconds(Awaited.LIMIT_SECONDS);

    private final RunLog log;
    private final PolicyFeed feed;
    private final KafkaProducer<byte[], byte[]> learner;
    private final VersionWriter versions;
    private final KafkaProducer<byte[], byte[]> writer;

    public TestRun(EmbeddedBroker broker, String name) {
        this.log = RunLog.open(
                Map.of("bootstrap.servers", broker.bootstrapServers()),
                new RunTopics(name + "."),
                new RunLog.NewRun(
                        new RunIdentity(name, 0, "policy"), new RunTopics(name + ".").ofPartners(), Optional.empty()),
                TopicsConfig.defaults(),
                "",
                Clock.systemUTC());
        this.feed = new PolicyFeed(connection(), WeightsConfig.defaults());
        this.learner = new KafkaProducer<>(
                connection().producer(Map.of("transactional.id", connection().scoped("learner"))),
                new ByteArraySerializer(),
                new ByteArraySerializer());
        learner.initTransactions();
        this.versions = new VersionWriter(connection(), learner, WeightsConfig.defaults());
        this.writer = new KafkaProducer<>(
                connection().producer(Map.of()), new ByteArraySerializer(), new ByteArraySerializer());
    }

    public LogConnection connection() {
        return log.connection();
    }

    public PolicyFeed feed() {
        return feed;
    }

    /** Weights that differ by version and are deterministic. */
    public static Weights weights(long version) {
        return Weights.random(SHAPE, 40 + version);
    }

    /** Publishes a version like a learner, and waits until the feed has it. */
    public void publish(long version, long rolloutsConsumed) {
        Weights weights = weights(version);
        learner.beginTransaction();
        versions.write(
                new VersionFacts(version, version - 1, Symbols.tokenizer().hash(), rolloutsConsumed, 0, 1),
                weights,
                new AdamW.State(version, new TensorSet(SHAPE.tensors()), new TensorSet(SHAPE.tensors())));
        learner.commitTransaction();
        feed.awaitAtLeast(version, LIMIT);
    }

    /** Writes a record unchanged and returns its offset. */
    public long write(String topic, String key, byte @Nullable [] value, String... headers) {
        try {
            return send(topic, key, value, headers).get().offset();
        } catch (ExecutionException e) {
            throw new IllegalStateException(e.getCause());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException(e);
        }
    }

    /** Writes a record unchanged to a partition. */
    public void write(String topic, int partition, String key, byte[] value) {
        try {
            writer.send(new ProducerRecord<>(topic, partition, key.getBytes(StandardCharsets.UTF_8), value))
                    .get();
        } catch (ExecutionException e) {
            throw new IllegalStateException(e.getCause());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException(e);
        }
    }

    /** Sends a record unchanged, without waiting; records of a partition stay in order. */
    public Future<RecordMetadata> send(String topic, String key, byte @Nullable [] value, String... headers) {
        ProducerRecord<byte[], byte[]> record =
                new ProducerRecord<>(topic, key.getBytes(StandardCharsets.UTF_8), value);
        for (int i = 0; i < headers.length; i += 2) {
            record.headers().add(headers[i], headers[i + 1].getBytes(StandardCharsets.UTF_8));
        }
        return writer.send(record);
    }

    /** A producer that has taken its transactional id; the caller's to close. */
    public KafkaProducer<byte[], byte[]> transactional(String id) {
        KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(
                connection().producer(Map.of("transactional.id", connection().scoped(id))),
                new ByteArraySerializer(),
                new ByteArraySerializer());
        producer.initTransactions();
        return producer;
    }

    /** Commits the offsets after these requests for the generators' group, like a generator that answered them. */
    public void answered(List<ConsumerRecord<byte[], byte[]>> requests) {
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        requests.forEach(request -> offsets.merge(
                new TopicPartition(request.topic(), request.partition()),
                new OffsetAndMetadata(request.offset() + 1),
                (a, b) -> a.offset() > b.offset() ? a : b));
        try (KafkaConsumer<byte[], byte[]> group = new KafkaConsumer<>(
                connection().consumer(Map.of("group.id", connection().group("generator"), "enable.auto.commit", false)),
                new ByteArrayDeserializer(),
                new ByteArrayDeserializer())) {
            group.commitSync(offsets);
        }
    }

    public <T extends SpecificRecord> byte[] bytes(Class<T> type, String topic, T record) {
        return AvroSerde.of(type, connection().registry()).serializer().serialize(topic, record);
    }

    /** Everything committed on a topic, from its beginning, once it satisfies the condition. */
    public List<ConsumerRecord<byte[], byte[]>> await(
            String topic, Predicate<List<ConsumerRecord<byte[], byte[]>>> enough) {
        return read(topic, (consumer, records) -> enough.test(records));
    }

    /** All committed records of a topic, which is complete if there are no writers. */
    public List<ConsumerRecord<byte[], byte[]>> committed(String topic) {
        Map<TopicPartition, Long> ends = new HashMap<>();
        return read(topic, (consumer, records) -> {
            if (ends.isEmpty()) { // once: later records lie beyond them
                ends.putAll(consumer.endOffsets(consumer.assignment()));
            }
            return ends.entrySet().stream().allMatch(end -> consumer.position(end.getKey()) >= end.getValue());
        });
    }

    /** As {@link #committed(String)}, decoded. */
    public <T extends SpecificRecord> List<T> committed(Class<T> type, String topic) {
        return committed(topic).stream().map(record -> decode(type, record)).toList();
    }

    private interface Enough {
        boolean test(KafkaConsumer<byte[], byte[]> consumer, List<ConsumerRecord<byte[], byte[]>> records);
    }

    private List<ConsumerRecord<byte[], byte[]>> read(String topic, Enough enough) {
        List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(
                connection().consumer(Map.of("isolation.level", "read_committed", "auto.offset.reset", "earliest")),
                new ByteArrayDeserializer(),
                new ByteArrayDeserializer())) {
            List<TopicPartition> partitions = consumer.partitionsFor(topic).stream()
                    .map(p -> new TopicPartition(topic, p.partition()))
                    .toList();
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            long begin = System.nanoTime();
            do {
                consumer.poll(Duration.ofMillis(50)).forEach(records::add);
                if (System.nanoTime() - begin > LIMIT.toNanos()) {
                    throw new AssertionError("what was awaited on " + topic + " did not come within "
                            + LIMIT.toSeconds() + " s; there are " + records.size() + " records");
                }
            } while (!enough.test(consumer, records));
        }
        return records;
    }

    /** As {@link #await}, decoded, once there are as many or more. */
    public <T extends SpecificRecord> List<T> await(Class<T> type, String topic, int count) {
        return await(topic, records -> records.size() >= count).stream()
                .map(record -> decode(type, record))
                .toList();
    }

    public <T extends SpecificRecord> T decode(Class<T> type, ConsumerRecord<byte[], byte[]> record) {
        return AvroSerde.of(type, connection().registry()).deserializer().deserialize(record.topic(), record.value());
    }

    @Override
    public void close() {
        writer.close();
        learner.close();
        feed.close();
        log.close();
    }
}
