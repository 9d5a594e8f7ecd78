package dev.millrace.workloads.topology;

import dev.millrace.log.LogConnection;
import dev.millrace.log.run.RunLog;
import dev.millrace.log.run.TopicsConfig;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.Score;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.schemas.run.VersionKey;
import dev.millrace.schemas.serde.AvroRecordSerializer;
import dev.millrace.schemas.serde.AvroSerde;
import java.nio.charset.StandardCharsets;
import java.time.Clock;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * The log of one synthetic run: its topics, its records as bytes, and producers for them.
 *
 * <p>Every measurement has a run of its own, with topics of its own, so that nothing is left over from the one before.
 * Thread-safe.
 */
public final class SyntheticRun implements AutoCloseable {
    private final RunLog log;
    private final LogConnection connection;
    private final SyntheticRecords records;
    private final String compression;
    private final AvroRecordSerializer<Rollout> rollouts;
    private final AvroRecordSerializer<Score> scores;
    private final AvroRecordSerializer<PolicyVersion> versions;

    /**
     * Makes the topics of a new run.
     *
     * @param name its id, and with a dot the prefix of its topics
     * @param compression of what is published
     */
    public SyntheticRun(
            Map<String, Object> client,
            String name,
            TopicsConfig topics,
            RolloutShape shape,
            long seed,
            String compression) {
        RunIdentity run = new RunIdentity(name, 0, "policy");
        RunTopics names = new RunTopics(name + ".");
        this.log = RunLog.open(client, names, run, topics, "", Clock.systemUTC());
        this.connection = log.connection();
        this.records = new SyntheticRecords(run, names, shape, seed);
        this.compression = compression;
        this.rollouts = AvroSerde.of(Rollout.class, connection.registry()).serializer();
        this.scores = AvroSerde.of(Score.class, connection.registry()).serializer();
        this.versions = AvroSerde.of(PolicyVersion.class, connection.registry()).serializer();
    }

    public LogConnection connection() {
        return connection;
    }

    public SyntheticRecords records() {
        return records;
    }

    /** A producer of bytes, idempotent, in requests of up to 256 KiB. The caller closes it. */
    public Producer<byte[], byte[]> producer(int lingerMs) {
        Map<String, Object> settings = new HashMap<>();
        settings.put(ProducerConfig.ACKS_CONFIG, "all");
        settings.put(ProducerConfig.LINGER_MS_CONFIG, lingerMs);
        settings.put(ProducerConfig.BATCH_SIZE_CONFIG, 256 << 10);
        settings.put(ProducerConfig.BUFFER_MEMORY_CONFIG, 64L << 20);
        settings.put(ProducerConfig.COMPRESSION_TYPE_CONFIG, compression);
        return new KafkaProducer<>(connection.producer(settings), new ByteArraySerializer(), new ByteArraySerializer());
    }

    /** A rollout as it goes to the log. */
    public ProducerRecord<byte[], byte[]> record(Rollout rollout, long timestampMs) {
        String topic = connection.topics().rollouts();
        return new ProducerRecord<>(
                topic, null, timestampMs, key(rollout.getGroupId()), rollouts.serialize(topic, rollout));
    }

    /** A score as it goes to the log. */
    public ProducerRecord<byte[], byte[]> record(Score score, long timestampMs) {
        String topic = connection.topics().scores();
        return new ProducerRecord<>(topic, null, timestampMs, key(score.getGroupId()), scores.serialize(topic, score));
    }

    /** A version as it goes to the log. */
    public ProducerRecord<byte[], byte[]> record(PolicyVersion version, long timestampMs) {
        String topic = connection.topics().policyVersions();
        return new ProducerRecord<>(
                topic, null, timestampMs, VersionKey.of(version).bytes(), versions.serialize(topic, version));
    }

    private static byte[] key(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    /** Publishes versions 0 to {@code newest}, made of no batch, one millisecond apart, the last one at {@code lastMs}. */
    public void publishVersions(long newest, long lastMs) throws InterruptedException {
        try (Producer<byte[], byte[]> producer = producer(0)) {
            for (long version = 0; version <= newest; version++) {
                long atMs = lastMs - newest + version;
                producer.send(record(records.version(version, -1, atMs), atMs)).get();
            }
        } catch (ExecutionException e) {
            throw new LoadException(
                    "a version could not be published: "
                            + Objects.requireNonNullElse(e.getCause(), e).getMessage(),
                    Objects.requireNonNullElse(e.getCause(), e));
        }
    }

    /** Deletes the run's topics, those of its topology included, to give the disk back. */
    public void delete() throws InterruptedException {
        try (Admin admin = Admin.create(connection.admin())) {
            admin.deleteTopics(admin.listTopics().names().get().stream()
                            .filter(name -> name.startsWith(connection.topics().prefix()))
                            .toList())
                    .all()
                    .get();
        } catch (ExecutionException e) {
            throw new LoadException(
                    "the topics of run " + connection.run().runId() + " could not be deleted: "
                            + Objects.requireNonNullElse(e.getCause(), e).getMessage(),
                    Objects.requireNonNullElse(e.getCause(), e));
        }
    }

    @Override
    public void close() {
        log.close();
    }
}
