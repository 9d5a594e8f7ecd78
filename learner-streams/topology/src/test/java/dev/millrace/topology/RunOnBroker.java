package dev.millrace.topology;

import dev.millrace.infra.broker.EmbeddedBroker;
import dev.millrace.log.LogConnection;
import dev.millrace.log.run.RunLog;
import dev.millrace.log.run.TopicsConfig;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.Score;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.schemas.serde.AvroSerde;
import java.nio.charset.StandardCharsets;
import java.time.Clock;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.function.BooleanSupplier;
import org.apache.avro.specific.SpecificRecord;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** One run's log on a real broker, with a producer of its rollouts and scores and readers of its output. */
public final class RunOnBroker implements AutoCloseable {
    private static final Duration PATIENCE = Duration.ofMinutes(5);

    private final RunLog log;
    private final KafkaProducer<byte[], byte[]> producer;
    private final Map<String, TopicReader> readers = new HashMap<>();
    public final LogConnection connection;

    /** @param prefix of the run's topics, different for each test */
    public RunOnBroker(EmbeddedBroker broker, String prefix) {
        this(Map.of("bootstrap.servers", broker.bootstrapServers()), prefix, TopicsConfig.defaults());
    }

    /** @param client {@code bootstrap.servers} and what else it takes to connect */
    public RunOnBroker(Map<String, Object> client, String prefix, TopicsConfig topics) {
        log = RunLog.open(
                client,
                new RunTopics(prefix),
                new RunLog.NewRun(Samples.RUN, new RunTopics(prefix).ofPartners(), Optional.empty()),
                topics,
                "",
                Clock.systemUTC());
        connection = log.connection();
        producer = new KafkaProducer<>(
                connection.producer(Map.of(ProducerConfig.LINGER_MS_CONFIG, 5, ProducerConfig.ACKS_CONFIG, "all")),
                new ByteArraySerializer(),
                new ByteArraySerializer());
    }

    public Future<RecordMetadata> send(Rollout rollout) {
        return send(connection.topics().rollouts(), rollout.getGroupId(), rollout, Rollout.class);
    }

    public Future<RecordMetadata> send(Score score) {
        return send(connection.topics().scores(), score.getGroupId(), score, Score.class);
    }

    public <T extends SpecificRecord> Future<RecordMetadata> send(String topic, String key, T record, Class<T> type) {
        return send(
                topic,
                key,
                AvroSerde.of(type, connection.registry()).serializer().serialize(topic, record));
    }

    public Future<RecordMetadata> send(String topic, String key, byte[] value) {
        return producer.send(new ProducerRecord<>(topic, key.getBytes(StandardCharsets.UTF_8), value));
    }

    /** With a timestamp of the test's own. */
    public Future<RecordMetadata> send(String topic, String key, long timestampMs, byte[] value) {
        return producer.send(
                new ProducerRecord<>(topic, null, timestampMs, key.getBytes(StandardCharsets.UTF_8), value));
    }

    /** Sends a rollout and the score of the record that it became. */
    public void sendScored(Rollout rollout) {
        RecordMetadata at = settled(send(rollout));
        settled(send(scoreAt(rollout, at)));
    }

    public Score scoreAt(Rollout rollout, RecordMetadata at) {
        Score.Builder score = Samples.score(rollout, at.offset());
        return score.setRolloutSource(new dev.millrace.schemas.LogCoordinates(at.topic(), at.partition(), at.offset()))
                .build();
    }

    public static RecordMetadata settled(Future<RecordMetadata> sent) {
        try {
            return sent.get();
        } catch (InterruptedException | ExecutionException e) {
            throw new IllegalStateException(e);
        }
    }

    /** Every committed record of a topic, from its beginning to its end now. */
    public synchronized List<ConsumerRecord<byte[], byte[]>> read(String topic) {
        return readers.computeIfAbsent(topic, name -> new TopicReader(connection, name))
                .toItsEnd();
    }

    public <T extends SpecificRecord> List<T> read(String topic, Class<T> type) {
        return read(topic).stream()
                .map(r ->
                        AvroSerde.of(type, connection.registry()).deserializer().deserialize(topic, r.value()))
                .toList();
    }

    /** Waits for a condition; the failure names it. */
    public static void await(String what, BooleanSupplier condition) {
        long deadline = System.nanoTime() + PATIENCE.toNanos();
        while (!condition.getAsBoolean()) {
            if (System.nanoTime() - deadline > 0) {
                throw new AssertionError("waited " + PATIENCE.toSeconds() + " s for " + what);
            }
            java.util.concurrent.locks.LockSupport.parkNanos(20_000_000);
        }
    }

    @Override
    public synchronized void close() {
        readers.values().forEach(TopicReader::close);
        producer.close();
        log.close();
    }
}
