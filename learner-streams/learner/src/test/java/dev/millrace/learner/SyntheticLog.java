package dev.millrace.learner;

import dev.millrace.log.LogConnection;
import dev.millrace.log.run.RunLog;
import dev.millrace.log.run.TopicsConfig;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.LogCoordinates;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.TrainingStep;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.weights.PolicyFeed;
import java.nio.charset.StandardCharsets;
import java.time.Clock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.function.UnaryOperator;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.apache.avro.specific.SpecificRecord;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** The log of a run with synthetic batches: writes what a topology would, and reads what a learner left. */
final class SyntheticLog implements AutoCloseable {
    /** A killed learner's open transaction blocks readers; shortens its timeout. */
    private static final Duration OPEN_TRANSACTION = Duration.ofSeconds(2);

    private final RunLog log;
    private final LogConnection connection;
    private final KafkaProducer<byte[], byte[]> producer;
    private final SyntheticRollouts rollouts = new SyntheticRollouts(11);
    private final Random shuffles = new Random(12);
    private long nextBatch;

    SyntheticLog(String bootstrapServers, String prefix) {
        this.log = RunLog.open(
                Map.of("bootstrap.servers", bootstrapServers),
                new RunTopics(prefix),
                SyntheticRollouts.RUN,
                topics(),
                "",
                Clock.systemUTC());
        this.connection = log.connection();
        this.producer = new KafkaProducer<>(
                connection.clientProperties(), new ByteArraySerializer(), new ByteArraySerializer());
    }

    /** As usual, but with one partition each: a cluster of one core makes them faster. */
    private static TopicsConfig topics() {
        return TopicsConfig.defaults().withPartitions(1);
    }

    LogConnection connection() {
        return connection;
    }

    /**
     * Writes {@code count} batches of {@code size} members: the trajectories of all of them in a mixed order, with some
     * between them that no batch takes, then the batches. Every third member of a batch is fully masked.
     */
    void produce(int count, int size) {
        produce(count, size, trajectory -> trajectory);
    }

    /** As {@link #produce(int, int)}, with the rollout of every trajectory on its topic, so that a ledger finds it. */
    void produceGenerated(int count, int size) {
        produce(count, size, this::generated);
    }

    private void produce(int count, int size, UnaryOperator<Trajectory> prepare) {
        List<Trajectory> trajectories = new ArrayList<>();
        for (int i = 0; i < count * size + count; i++) {
            trajectories.add(prepare.apply(rollouts.next()));
        }
        List<Integer> order =
                new ArrayList<>(IntStream.range(0, trajectories.size()).boxed().toList());
        Collections.shuffle(order, shuffles);
        Map<Integer, Future<RecordMetadata>> sent = new HashMap<>();
        for (int i : order) {
            sent.put(i, sending(connection.topics().trajectories(), trajectories.get(i)));
        }
        for (int b = 0; b < count; b++) {
            List<BatchEntry> entries = new ArrayList<>();
            for (int i = b * size; i < (b + 1) * size; i++) {
                Trajectory trajectory = trajectories.get(i);
                entries.add(
                        i % 3 == 2
                                ? SyntheticRollouts.masked(trajectory, 0, offset(sent.get(i)))
                                : SyntheticRollouts.entry(trajectory, 0, offset(sent.get(i))));
            }
            produce(entries);
        }
    }

    private Trajectory generated(Trajectory trajectory) {
        long offset = send(connection.topics().rollouts(), SyntheticRollouts.rollout(trajectory));
        return Trajectory.newBuilder(trajectory)
                .setRolloutSource(new LogCoordinates(connection.topics().rollouts(), 0, offset))
                .build();
    }

    /** As if the next batch had been written and lost. */
    void loseNextBatch() {
        nextBatch++;
    }

    /** Writes the next batch with these entries. */
    void produce(List<BatchEntry> entries) {
        produce(SyntheticRollouts.batch(nextBatch++, entries));
    }

    void produce(LearnerBatch batch) {
        send(connection.topics().batches(), batch);
    }

    void produceBatchGarbage(byte[] value) {
        offset(sending(connection.topics().batches(), value));
    }

    Trajectory nextTrajectory() {
        return rollouts.next();
    }

    /** Writes a trajectory and returns its position. */
    long produce(Trajectory trajectory) {
        return send(connection.topics().trajectories(), trajectory);
    }

    /** Under which its topics are. */
    String prefix() {
        return connection.topics().prefix();
    }

    /** Writes every trajectory to another log, at the same offsets. */
    void copyTrajectoriesTo(SyntheticLog other) {
        for (ConsumerRecord<byte[], byte[]> record : read(connection.topics().trajectories())) {
            String topic = other.connection.topics().trajectories();
            other.producer.send(new ProducerRecord<>(topic, record.key(), record.value()));
        }
        other.producer.flush();
    }

    /** Offsets of the committed records of a topic. */
    List<Long> offsets(String topic) {
        return read(topic).stream().map(ConsumerRecord::offset).toList();
    }

    /** Hashes of the versions that the run's followers have, from version 0 on. */
    List<String> chain() {
        try (PolicyFeed feed = new PolicyFeed(connection, LearnerIT.weights())) {
            long newest = feed.newestCommitted().orElseThrow().getVersion();
            return LongStream.rangeClosed(0, newest)
                    .mapToObj(version -> feed.manifest(version).getWeights().getSha256())
                    .toList();
        }
    }

    /** Hash in the last record under a key of {@code policy-versions}; empty if that has no value. */
    Optional<String> lastManifest(byte[] key) {
        String topic = connection.topics().policyVersions();
        return read(topic).stream()
                .filter(record -> Arrays.equals(record.key(), key))
                .reduce((earlier, later) -> later)
                .map(ConsumerRecord::value)
                .map(value -> AvroSerde.of(PolicyVersion.class, connection.registry())
                        .deserializer()
                        .deserialize(topic, value)
                        .getWeights()
                        .getSha256());
    }

    /** Records on {@code batches}. */
    List<LearnerBatch> batches() {
        return read(connection.topics().batches(), LearnerBatch.class);
    }

    /** Writes a record as a foreign producer. */
    void produceForeign(String topic, byte[] key, byte[] value) {
        send(topic, key, value);
    }

    /** The bytes of a manifest. */
    byte[] bytes(PolicyVersion manifest) {
        return AvroSerde.of(PolicyVersion.class, connection.registry())
                .serializer()
                .serialize(connection.topics().policyVersions(), manifest);
    }

    /** Commits in the learner's group what a repair does. */
    void commitProgress(long offset, String metadata) {
        TopicPartition partition = new TopicPartition(connection.topics().batches(), 0);
        KafkaConsumer<byte[], byte[]> consumer = consumer();
        try {
            consumer.commitSync(Map.of(partition, new OffsetAndMetadata(offset, metadata)));
        } finally {
            consumer.close(CloseOptions.timeout(Duration.ZERO));
        }
    }

    private long send(String topic, SpecificRecord record) {
        return offset(sending(topic, record));
    }

    private long send(String topic, byte[] key, byte[] value) {
        return offset(producer.send(new ProducerRecord<>(topic, key, value)));
    }

    private <T extends SpecificRecord> Future<RecordMetadata> sending(String topic, T record) {
        @SuppressWarnings("unchecked")
        Class<T> type = (Class<T>) record.getClass();
        byte[] value = AvroSerde.of(type, connection.registry()).serializer().serialize(topic, record);
        return sending(topic, value);
    }

    private Future<RecordMetadata> sending(String topic, byte[] value) {
        byte[] key = SyntheticRollouts.RUN.policyId().getBytes(StandardCharsets.UTF_8);
        return producer.send(new ProducerRecord<>(topic, key, value));
    }

    private static long offset(Future<RecordMetadata> sent) {
        try {
            return sent.get().offset();
        } catch (InterruptedException | ExecutionException e) {
            throw new AssertionError(e);
        }
    }

    /** Committed manifests in the order of the log. */
    List<PolicyVersion> versions() {
        return read(connection.topics().policyVersions(), PolicyVersion.class);
    }

    /** When each committed record of a topic was written, in the order of the log. */
    List<Long> times(String topic) {
        return read(topic).stream().map(ConsumerRecord::timestamp).toList();
    }

    /** Hash of the weights of every committed version, in the order of the log. */
    List<String> hashes() {
        return versions().stream()
                .map(version -> version.getWeights().getSha256())
                .toList();
    }

    /** Hash of the optimizer's state of every committed version, in the order of the log. */
    List<String> optimizerHashes() {
        return versions().stream()
                .map(version -> version.getOptimizer().getSha256())
                .toList();
    }

    /** Committed training-log records in the order of the log. */
    List<TrainingStep> steps() {
        return read(connection.topics().trainingLog(), TrainingStep.class);
    }

    List<ConsumerRecord<byte[], byte[]>> deadLetters() {
        return read(connection.topics().deadLetters());
    }

    /** The learner's committed offset of {@code batches}; -1 if there is none. */
    long committedOffset() {
        TopicPartition partition = new TopicPartition(connection.topics().batches(), 0);
        KafkaConsumer<byte[], byte[]> consumer = consumer();
        try {
            OffsetAndMetadata committed = consumer.committed(Set.of(partition)).get(partition);
            return committed == null ? -1 : committed.offset();
        } finally {
            consumer.close(CloseOptions.timeout(Duration.ZERO));
        }
    }

    private <T extends SpecificRecord> List<T> read(String topic, Class<T> type) {
        AvroSerde<T> serde = AvroSerde.of(type, connection.registry());
        return read(topic).stream()
                .filter(record -> record.value() != null && record.value()[0] == 0) // others are foreign
                .map(record -> serde.deserializer().deserialize(topic, record.value()))
                .toList();
    }

    private List<ConsumerRecord<byte[], byte[]>> read(String topic) {
        TopicPartition partition = new TopicPartition(topic, 0);
        List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
        KafkaConsumer<byte[], byte[]> consumer = consumer();
        try {
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            long end = end(partition);
            long lastProgress = System.nanoTime();
            while (consumer.position(partition) < end
                    && (System.nanoTime() - lastProgress < OPEN_TRANSACTION.toNanos()
                            || consumer.position(partition)
                                    < consumer.endOffsets(List.of(partition)).get(partition))) { // or it is slow
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(100))) {
                    records.add(record);
                    lastProgress = System.nanoTime();
                }
            }
        } finally {
            consumer.close(CloseOptions.timeout(Duration.ZERO));
        }
        return records;
    }

    /** The end of everything, committed or not: a commit is answered a moment before what it commits can be read. */
    private long end(TopicPartition partition) {
        KafkaConsumer<byte[], byte[]> consumer = consumer("read_uncommitted");
        try {
            consumer.assign(List.of(partition));
            return consumer.endOffsets(List.of(partition)).get(partition);
        } finally {
            consumer.close(CloseOptions.timeout(Duration.ZERO));
        }
    }

    private KafkaConsumer<byte[], byte[]> consumer() {
        return consumer("read_committed");
    }

    private KafkaConsumer<byte[], byte[]> consumer(String isolation) {
        return new KafkaConsumer<>(
                connection.consumer(Map.of(
                        "isolation.level",
                        isolation,
                        "group.id",
                        connection.scoped("learner"),
                        "enable.auto.commit",
                        false)),
                new ByteArrayDeserializer(),
                new ByteArrayDeserializer());
    }

    @Override
    public void close() {
        producer.close();
        rollouts.close();
        log.close();
    }
}
