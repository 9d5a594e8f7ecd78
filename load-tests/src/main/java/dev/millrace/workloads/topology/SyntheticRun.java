package dev.millrace.workloads.topology;

import dev.millrace.log.LogConnection;
import dev.millrace.log.run.RunLog;
import dev.millrace.log.run.TopicsConfig;
import dev.millrace.schemas.FinishReason;
import dev.millrace.schemas.LogCoordinates;
import dev.millrace.schemas.LogProbDistribution;
import dev.millrace.schemas.LogProbVector;
import dev.millrace.schemas.PolicyRole;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.SamplingParameters;
import dev.millrace.schemas.Score;
import dev.millrace.schemas.Speaker;
import dev.millrace.schemas.TensorLocation;
import dev.millrace.schemas.Turn;
import dev.millrace.schemas.VersionSpan;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.schemas.run.VersionKey;
import dev.millrace.schemas.serde.AvroRecordSerializer;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.workloads.topology.RolloutShape.RolloutDraw;
import dev.millrace.workloads.topology.RolloutShape.RolloutDraw.Fate;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.time.Clock;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Topics, encoded records and producers of one synthetic run. Every measurement has its own. Thread-safe. */
public final class SyntheticRun implements AutoCloseable {
    /** Default of a broker's {@code transaction.max.timeout.ms}. */
    private static final int LONGEST_TRANSACTION_MS = 900_000;

    private final RunLog log;
    private final LogConnection connection;
    private final SyntheticRecords records;
    private final String compression;
    private final AvroRecordSerializer<Rollout> rollouts;
    private final AvroRecordSerializer<Score> scores;
    private final AvroRecordSerializer<PolicyVersion> versions;

    /**
     * Creates the topics.
     *
     * @param name run id and topic prefix
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

    /** Idempotent, in requests of up to 256 KiB. The caller closes it. */
    public Producer<byte[], byte[]> producer(int lingerMs) {
        return producer(lingerMs, Map.of());
    }

    /** The same, for transactions as long as a broker's default allows, one producer at a time. */
    Producer<byte[], byte[]> transactionalProducer(int lingerMs) {
        return producer(
                lingerMs,
                Map.of(
                        ProducerConfig.TRANSACTIONAL_ID_CONFIG,
                        connection.scoped("load"),
                        ProducerConfig.TRANSACTION_TIMEOUT_CONFIG,
                        LONGEST_TRANSACTION_MS));
    }

    private Producer<byte[], byte[]> producer(int lingerMs, Map<String, Object> more) {
        Map<String, Object> settings = new HashMap<>(more);
        settings.put(ProducerConfig.ACKS_CONFIG, "all");
        settings.put(ProducerConfig.LINGER_MS_CONFIG, lingerMs);
        settings.put(ProducerConfig.BATCH_SIZE_CONFIG, 256 << 10);
        settings.put(ProducerConfig.BUFFER_MEMORY_CONFIG, 64L << 20);
        settings.put(ProducerConfig.COMPRESSION_TYPE_CONFIG, compression);
        return new KafkaProducer<>(connection.producer(settings), new ByteArraySerializer(), new ByteArraySerializer());
    }

    public ProducerRecord<byte[], byte[]> record(Rollout rollout, long timestampMs) {
        String topic = connection.topics().rollouts();
        return new ProducerRecord<>(
                topic, null, timestampMs, key(rollout.getGroupId()), rollouts.serialize(topic, rollout));
    }

    public ProducerRecord<byte[], byte[]> record(Score score, long timestampMs) {
        String topic = connection.topics().scores();
        return new ProducerRecord<>(topic, null, timestampMs, key(score.getGroupId()), scores.serialize(topic, score));
    }

    public ProducerRecord<byte[], byte[]> record(PolicyVersion version, long timestampMs) {
        String topic = connection.topics().policyVersions();
        return new ProducerRecord<>(
                topic, null, timestampMs, VersionKey.of(version).bytes(), versions.serialize(topic, version));
    }

    private static byte[] key(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    /** Publishes versions 0 to {@code newest} without batches, one millisecond apart, the last at {@code lastMs}. */
    public void publishVersions(long newest, long lastMs) throws InterruptedException {
        try (Producer<byte[], byte[]> producer = producer(0)) {
            for (long version = 0; version <= newest; version++) {
                long atMs = lastMs - newest + version;
                producer.send(record(records.version(version, -1, atMs), atMs)).get();
            }
        } catch (ExecutionException e) {
            throw LoadException.of("a version could not be published", e);
        }
    }

    public void delete() throws InterruptedException {
        deleteTopics(connection);
    }

    /** Deletes a run's topics, including the topology's. */
    public static void deleteTopics(LogConnection connection) throws InterruptedException {
        try (Admin admin = Admin.create(connection.admin())) {
            admin.deleteTopics(admin.listTopics().names().get().stream()
                            .filter(name -> name.startsWith(connection.topics().prefix()))
                            .toList())
                    .all()
                    .get();
        } catch (ExecutionException e) {
            throw LoadException.of("the topics of run " + connection.run().runId() + " could not be deleted", e);
        }
    }

    @Override
    public void close() {
        log.close();
    }

    /**
     * Makes the records of a synthetic run. Thread-safe.
     *
     * <p>Token ids (log-uniform) and log-probs (minus exponential with mean 1) are drawn once into vectors much longer
     * than a response and a compressor's window; records take slices, so making one costs nothing that grows with its
     * length.
     *
     * <pre>
     *   behavior log-prob = b,   old = min(0, b + engine noise),   proximal = min(0, old + drift)
     *   drift ~ N(0, versions behind) * drift_per_version
     * </pre>
     */
    public static final class SyntheticRecords {
        private static final int VOCABULARY = 150_000;

        private static final int LEAST_KEPT_TOKENS = 1 << 18;
        private static final String TOKENIZER = "synthetic";

        private final RunIdentity run;
        private final RunTopics topics;
        private final RolloutShape shape;
        private final long seed;
        private final int kept;
        private final ByteBuffer tokens;
        private final ByteBuffer ones;
        private final ByteBuffer behavior;
        private final ByteBuffer old;
        /** By versions behind. */
        private final ByteBuffer[] proximal;

        /** @param seed of everything drawn */
        public SyntheticRecords(RunIdentity run, RunTopics topics, RolloutShape shape, long seed) {
            this.run = run;
            this.topics = topics;
            this.shape = shape;
            this.seed = seed;
            long longest =
                    Math.max(shape.promptTokens().most(), shape.responseTokens().most());
            this.kept = (int) Math.max(LEAST_KEPT_TOKENS, 2 * longest);
            SplittableRandom random = new SplittableRandom(seed);
            this.tokens = littleEndian(kept);
            for (int t = 0; t < kept; t++) {
                tokens.putInt(4 * t, (int) Math.exp(random.nextDouble() * Math.log(VOCABULARY)) % VOCABULARY);
            }
            byte[] mask = new byte[kept];
            Arrays.fill(mask, (byte) 1);
            this.ones = ByteBuffer.wrap(mask);
            this.behavior = littleEndian(kept);
            for (int t = 0; t < kept; t++) {
                behavior.putFloat(4 * t, (float) Math.log(1 - random.nextDouble()));
            }
            this.old = moved(behavior, shape.engineNoise(), random);
            this.proximal =
                    new ByteBuffer[Math.toIntExact(shape.versionsBehind().most()) + 1];
            for (int behind = 0; behind < proximal.length; behind++) {
                proximal[behind] = behind == 0 ? old : moved(old, shape.driftPerVersion() * Math.sqrt(behind), random);
            }
        }

        private static ByteBuffer littleEndian(int elements) {
            return ByteBuffer.wrap(new byte[4 * elements]).order(ByteOrder.LITTLE_ENDIAN);
        }

        private static ByteBuffer moved(ByteBuffer logProbs, double deviation, SplittableRandom random) {
            ByteBuffer moved = littleEndian(logProbs.capacity() / 4);
            for (int at = 0; at < moved.capacity(); at += 4) {
                moved.putFloat(at, (float) Math.min(0, logProbs.getFloat(at) + deviation * random.nextGaussian()));
            }
            return moved;
        }

        public RolloutDraw draw(long index) {
            SplittableRandom ofGroup = stream(~(index / shape.groupSize()));
            int prompt = (int) shape.promptTokens().draw(ofGroup);
            int promptAt = ofGroup.nextInt(kept - prompt);
            SplittableRandom random = stream(index);
            int response = (int) shape.responseTokens().draw(random);
            int behind = (int) shape.versionsBehind().draw(random);
            int at = random.nextInt(kept - response);
            double fate = random.nextDouble();
            return new RolloutDraw(
                    index,
                    new RolloutDraw.Slice(promptAt, prompt),
                    new RolloutDraw.Slice(at, response),
                    behind,
                    random.nextInt(2),
                    fate < shape.garbageShare()
                            ? Fate.GARBAGE
                            : fate < shape.garbageShare() + shape.unscoredShare() ? Fate.UNSCORED : Fate.SCORED);
        }

        private SplittableRandom stream(long number) {
            return new SplittableRandom(seed ^ (number * 0x9E3779B97F4A7C15L + 1));
        }

        public String groupId(long index) {
            return "group-" + index / shape.groupSize();
        }

        public String rolloutId(long index) {
            return groupId(index) + "/" + index % shape.groupSize();
        }

        /** @param newestVersion from which the drawn lag counts */
        public Rollout rollout(RolloutDraw draw, long newestVersion, long nowMs) {
            String groupId = groupId(draw.index());
            int sample = (int) (draw.index() % shape.groupSize());
            int length = draw.response().tokens();
            long version = sampledBy(draw, newestVersion);
            return Rollout.newBuilder()
                    .setRunId(run.runId())
                    .setEpoch(run.epoch())
                    .setRolloutId(groupId + "/" + sample)
                    .setGroupId(groupId)
                    .setOrdinal(draw.index() / shape.groupSize())
                    .setSampleIndex(sample)
                    .setGroupSize(shape.groupSize())
                    .setGeneratorId("load")
                    .setEnvironment("synthetic")
                    .setTokenizerHash(TOKENIZER)
                    .setPromptTokens(
                            words(tokens, draw.prompt().at(), draw.prompt().tokens()))
                    .setResponseTokens(words(tokens, draw.response().at(), length))
                    .setMask(ones.slice(draw.response().at(), length))
                    .setBehaviorLogProbs(words(behavior, draw.response().at(), length))
                    .setLogProbDistribution(LogProbDistribution.TEMPERED)
                    .setTemperedLogProbs(null)
                    .setSampling(new SamplingParameters(1.0, 0, 1.0, length, seed, false, 0, 0.0, false))
                    .setTurns(List.of(new Turn(Speaker.POLICY, 0, length, null)))
                    .setVersionSpans(List.of(new VersionSpan(version, 0, length)))
                    .setReward(draw.reward())
                    .setRewardComponents(Map.of())
                    .setFinishReason(FinishReason.STOP)
                    .setAdmittedVersion(version)
                    .setStartedAtMs(nowMs)
                    .setFinishedAtMs(nowMs)
                    .build();
        }

        public Score score(RolloutDraw draw, LogCoordinates at, long newestVersion, long nowMs) {
            int length = draw.response().tokens();
            return Score.newBuilder()
                    .setRunId(run.runId())
                    .setEpoch(run.epoch())
                    .setRolloutId(rolloutId(draw.index()))
                    .setGroupId(groupId(draw.index()))
                    .setScorerId("load")
                    .setRolloutSource(at)
                    .setVectors(List.of(
                            vector(
                                    PolicyRole.OLD,
                                    sampledBy(draw, newestVersion),
                                    words(old, draw.response().at(), length)),
                            vector(
                                    PolicyRole.PROXIMAL,
                                    newestVersion,
                                    words(
                                            proximal[draw.versionsBehind()],
                                            draw.response().at(),
                                            length))))
                    .setUnavailable(null)
                    .setScoredAtMs(nowMs)
                    .build();
        }

        private static LogProbVector vector(PolicyRole policy, long version, ByteBuffer logProbs) {
            return LogProbVector.newBuilder()
                    .setPolicy(policy)
                    .setVersionSpans(List.of(new VersionSpan(version, 0, logProbs.remaining() / Float.BYTES)))
                    .setLogProbs(logProbs)
                    .setEntropies(null)
                    .setSumSquaredProbs(null)
                    .build();
        }

        /** A manifest without weights, sufficient for the topology. */
        public PolicyVersion version(long version, long batchId, long nowMs) {
            return PolicyVersion.newBuilder()
                    .setRunId(run.runId())
                    .setEpoch(run.epoch())
                    .setPolicyId(run.policyId())
                    .setVersion(version)
                    .setParentVersion(version - 1)
                    .setBatchId(batchId)
                    .setShape("{}")
                    .setTokenizerHash(TOKENIZER)
                    .setWeights(TensorLocation.newBuilder()
                            .setTopic(topics.weights())
                            .setPartition(0)
                            .setFirstOffset(0)
                            .setLastOffset(0)
                            .setTensors(List.of())
                            .setSha256("00")
                            .build())
                    .setOptimizerSteps(version)
                    .setRolloutsConsumed(0)
                    .setTokensTrained(0)
                    .setPublishedAtMs(nowMs)
                    .build();
        }

        private static long sampledBy(RolloutDraw draw, long newestVersion) {
            return Math.max(0, newestVersion - draw.versionsBehind());
        }

        private static ByteBuffer words(ByteBuffer all, int at, int length) {
            return all.slice(4 * at, 4 * length);
        }
    }
}
