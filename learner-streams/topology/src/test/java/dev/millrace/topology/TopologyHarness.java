package dev.millrace.topology;

import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.log.Alarms;
import dev.millrace.log.deadletter.Quarantines;
import dev.millrace.log.scan.RecordFetcher;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.Outcome;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.Reward;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.Score;
import dev.millrace.schemas.TrainingStep;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.registry.InMemorySchemaRegistry;
import dev.millrace.schemas.run.EpochLineage;
import dev.millrace.schemas.run.VersionKey;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.schemas.serde.MalformedRecordException;
import dev.millrace.topology.ingress.JoinSide;
import dev.millrace.topology.task.TopologyMeters;
import dev.millrace.topology.task.Wait;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.ServiceLoader;
import java.util.TreeMap;
import org.apache.avro.specific.SpecificRecord;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.TestOutputTopic;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.test.TestRecord;

/**
 * The whole topology without a broker: records in, records out, time in the test's hands.
 *
 * <p>Input and output are recorded and passed to every {@link RecordedTopologyCheck} on closing. In every test, the
 * recorded input must explain every byte of the output.
 */
public final class TopologyHarness implements AutoCloseable {
    private long publishedVersions;
    private static final Instant START = Instant.ofEpochMilli(1_700_000_000_000L);

    public final InMemorySchemaRegistry schemas = new InMemorySchemaRegistry();
    public final SimpleMeterRegistry meters = new SimpleMeterRegistry();
    final Alarms alarms = new Alarms();
    private final TopologyMeters shared = new TopologyMeters(meters, alarms);
    private final TopologyTestDriver driver;
    private final Map<String, TestInputTopic<byte[], byte[]>> inputs = new HashMap<>();
    private final Map<String, TestOutputTopic<byte[], byte[]>> outputs = new HashMap<>();
    private final Map<String, TreeMap<Long, ConsumerRecord<byte[], byte[]>>> log = new HashMap<>();
    /** What came out, by topic, and how much of it the test has read. */
    private final Map<String, List<TestRecord<byte[], byte[]>>> made = new HashMap<>();

    private final Map<String, Integer> read = new HashMap<>();
    private final RecordedTopics recorded = new RecordedTopics(Samples.TOPICS.all());
    private final TopologyConfig config;
    private final Algorithm algorithm;
    private final int maxValueBytes;
    private boolean isForgetful;
    private Instant now = START;
    private Duration idled = Duration.ZERO;

    public TopologyHarness(TopologyConfig config, Path stateDirectory, int maxValueBytes) {
        this(config, Algorithm.defaults(), stateDirectory, maxValueBytes);
    }

    public TopologyHarness(TopologyConfig config, Algorithm algorithm, Path stateDirectory, int maxValueBytes) {
        this.config = config;
        this.algorithm = algorithm;
        this.maxValueBytes = maxValueBytes;
        Properties properties = new Properties();
        properties.put(StreamsConfig.APPLICATION_ID_CONFIG, "harness");
        properties.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "none:1");
        properties.put(StreamsConfig.STATE_DIR_CONFIG, stateDirectory.toString());
        driver = new TopologyTestDriver(
                MillraceTopology.build(
                        config,
                        algorithm,
                        new RunContext(
                                Samples.RUN,
                                EpochLineage.FIRST,
                                Samples.TOPICS,
                                schemas,
                                LogFetcher::new,
                                maxValueBytes,
                                shared),
                        Quarantines.none()),
                properties,
                START);
        for (String topic : List.of(
                Samples.TOPICS.rollouts(),
                Samples.TOPICS.scores(),
                Samples.TOPICS.rewards(),
                Samples.TOPICS.referenceScores(),
                Samples.TOPICS.teacherScores(),
                Samples.TOPICS.policyVersions(),
                Samples.TOPICS.trainingLog(),
                Samples.TOPICS.trajectories())) {
            inputs.put(topic, driver.createInputTopic(topic, new ByteArraySerializer(), new ByteArraySerializer()));
            log.put(topic, new TreeMap<>());
        }
        for (String topic : List.of(
                Samples.TOPICS.trajectories(),
                Samples.TOPICS.batches(),
                Samples.TOPICS.outcomes(),
                Samples.TOPICS.deadLetters())) {
            outputs.put(
                    topic, driver.createOutputTopic(topic, new ByteArrayDeserializer(), new ByteArrayDeserializer()));
        }
    }

    public TopologyHarness(TopologyConfig config, Path stateDirectory) {
        this(config, stateDirectory, 1 << 20);
    }

    public TopologyHarness(TopologyConfig config, Algorithm algorithm, Path stateDirectory) {
        this(config, algorithm, stateDirectory, 1 << 20);
    }

    /** Last wait reports of the stages, which report every second of {@link #idle}. */
    public List<Wait> waits() {
        return shared.waits().all();
    }

    /** Reads what was piped in, as a fetcher would from the log. */
    private final class LogFetcher implements RecordFetcher {
        @Override
        public List<ConsumerRecord<byte[], byte[]>> fetch(TopicPartition partition, long[] offsets) {
            List<ConsumerRecord<byte[], byte[]>> found = new ArrayList<>();
            for (long offset : offsets) {
                ConsumerRecord<byte[], byte[]> record =
                        log.get(partition.topic()).get(offset);
                if (record != null) {
                    found.add(record);
                }
            }
            return found;
        }

        @Override
        public void close() {
            // reads a map
        }
    }

    /** Takes a record away, as retention would. */
    public void forget(String topic, long offset) {
        isForgetful = true;
        log.get(topic).remove(offset);
    }

    /** So much time passes before the next record. */
    public void later(Duration duration) {
        now = now.plus(duration);
    }

    /** So much time passes without a record, second by second. */
    public void idle(Duration duration) {
        for (long s = 0; s < duration.toSeconds(); s++) {
            driver.advanceWallClockTime(Duration.ofSeconds(1));
            idled = idled.plusSeconds(1);
        }
        collect();
    }

    /** Pipes bytes; the offset they get. */
    public long pipe(String topic, byte[] key, byte[] value, Headers headers) {
        TreeMap<Long, ConsumerRecord<byte[], byte[]>> records = log.get(topic);
        long offset = records.isEmpty() ? 0 : records.lastKey() + 1;
        records.put(
                offset,
                new ConsumerRecord<>(
                        topic,
                        0,
                        offset,
                        now.toEpochMilli(),
                        org.apache.kafka.common.record.TimestampType.CREATE_TIME,
                        0,
                        0,
                        key,
                        value,
                        headers,
                        java.util.Optional.empty()));
        record(topic, key, value, headers, now.toEpochMilli());
        inputs.get(topic).pipeInput(new TestRecord<>(key, value, headers, now));
        collect();
        return offset;
    }

    private void record(String topic, byte[] key, byte[] value, Headers headers, long timestampMs) {
        TreeMap<Long, ConsumerRecord<byte[], byte[]>> records = recorded.of(topic);
        recorded.put(new ConsumerRecord<>(
                topic,
                0,
                records.isEmpty() ? 0 : records.lastKey() + 1,
                timestampMs,
                org.apache.kafka.common.record.TimestampType.CREATE_TIME,
                0,
                0,
                key,
                value,
                new RecordHeaders(headers),
                java.util.Optional.empty()));
    }

    private void collect() {
        outputs.forEach((topic, output) -> {
            for (TestRecord<byte[], byte[]> each : output.readRecordsToList()) {
                made.computeIfAbsent(topic, t -> new ArrayList<>()).add(each);
                record(topic, each.key(), each.value(), each.headers(), each.timestamp());
            }
        });
    }

    /** All inputs and outputs so far. */
    public RecordedTopics recorded() {
        collect();
        return recorded;
    }

    public long pipe(String topic, String key, byte[] value) {
        return pipe(topic, key.getBytes(StandardCharsets.UTF_8), value, new RecordHeaders());
    }

    public long pipe(Rollout rollout) {
        return pipe(
                Samples.TOPICS.rollouts(),
                rollout.getGroupId(),
                bytes(Samples.TOPICS.rollouts(), rollout, Rollout.class));
    }

    public long pipe(Score score) {
        return pipe(Samples.TOPICS.scores(), score.getGroupId(), bytes(Samples.TOPICS.scores(), score, Score.class));
    }

    /** Pipes a score of any kind to its topic. */
    public long pipe(JoinSide kind, Score score) {
        String topic = kind.topic(Samples.TOPICS);
        return pipe(topic, score.getGroupId(), bytes(topic, score, Score.class));
    }

    public long pipe(Reward reward) {
        return pipe(
                Samples.TOPICS.rewards(), reward.getGroupId(), bytes(Samples.TOPICS.rewards(), reward, Reward.class));
    }

    /** Publishes a version, and before it those of its chain that were not published yet. */
    public long pipe(PolicyVersion version) {
        while (publishedVersions < version.getVersion()) {
            pipe(Samples.version(publishedVersions));
        }
        publishedVersions = Math.max(publishedVersions, version.getVersion() + 1);
        return pipeAlone(version);
    }

    /** Publishes a version that may extend no chain. */
    public long pipeAlone(PolicyVersion version) {
        return pipe(
                Samples.TOPICS.policyVersions(),
                VersionKey.of(version).toString(),
                bytes(Samples.TOPICS.policyVersions(), version, PolicyVersion.class));
    }

    public long pipe(TrainingStep step) {
        return pipe(
                Samples.TOPICS.trainingLog(),
                step.getPolicyId(),
                bytes(Samples.TOPICS.trainingLog(), step, TrainingStep.class));
    }

    public <T extends SpecificRecord> byte[] bytes(String topic, T record, Class<T> type) {
        return AvroSerde.of(type, schemas).serializer().serialize(topic, record);
    }

    public List<Trajectory> trajectories() {
        return read(Samples.TOPICS.trajectories(), Trajectory.class);
    }

    /** Where others have written to the topic too. */
    public List<Trajectory> trajectoriesThatCanBeRead() {
        List<Trajectory> found = new ArrayList<>();
        for (TestRecord<byte[], byte[]> record : records(Samples.TOPICS.trajectories())) {
            try {
                found.add(AvroSerde.of(Trajectory.class, schemas)
                        .deserializer()
                        .deserialize(Samples.TOPICS.trajectories(), record.value()));
            } catch (MalformedRecordException foreign) {
                continue; // what the test itself wrote
            }
        }
        return found;
    }

    public List<LearnerBatch> batches() {
        return read(Samples.TOPICS.batches(), LearnerBatch.class);
    }

    public List<Outcome> outcomes() {
        return read(Samples.TOPICS.outcomes(), Outcome.class);
    }

    /** Reason, rollout id and source topic of each outcome since the last call. */
    public List<String> outcomeNames() {
        return outcomes().stream()
                .map(o -> o.getReason() + " " + o.getRolloutId() + " "
                        + o.getSource()
                                .getTopic()
                                .substring(Samples.TOPICS.prefix().length()) + "@"
                        + o.getSource().getOffset())
                .toList();
    }

    public List<TestRecord<byte[], byte[]>> deadLetters() {
        return records(Samples.TOPICS.deadLetters());
    }

    /** What came out on a topic since the last call. */
    public List<TestRecord<byte[], byte[]>> records(String topic) {
        collect();
        List<TestRecord<byte[], byte[]>> all = made.getOrDefault(topic, List.of());
        int from = read.getOrDefault(topic, 0);
        read.put(topic, all.size());
        return List.copyOf(all.subList(from, all.size()));
    }

    /** What was written to a store's changelog since the last call. */
    public List<TestRecord<byte[], byte[]>> changelog(String store) {
        return driver.createOutputTopic(
                        "harness-" + store + "-changelog", new ByteArrayDeserializer(), new ByteArrayDeserializer())
                .readRecordsToList();
    }

    /** The wall clock, which only {@link #idle} moves. */
    public long wallClockMs() {
        return START.plus(idled).toEpochMilli();
    }

    /** Reason and field of each dead letter since the last call. */
    public List<String> deadLetterNames() {
        return deadLetters().stream()
                .map(r -> header(r, "reason") + " " + header(r, "field"))
                .toList();
    }

    public static String header(TestRecord<byte[], byte[]> record, String name) {
        Header header = record.headers().lastHeader("millrace.error." + name);
        return header == null ? "" : new String(header.value(), StandardCharsets.UTF_8);
    }

    private <T extends SpecificRecord> List<T> read(String topic, Class<T> type) {
        return records(topic).stream()
                .map(r -> AvroSerde.of(type, schemas).deserializer().deserialize(topic, r.value()))
                .toList();
    }

    public double count(String meter, String reason) {
        return meters.get(meter).tag("reason", reason).counter().count();
    }

    @Override
    public void close() {
        collect();
        driver.close();
        if (!isForgetful) {
            ServiceLoader.load(RecordedTopologyCheck.class)
                    .forEach(check -> check.check(recorded, schemas, config, algorithm, maxValueBytes));
        }
    }
}
