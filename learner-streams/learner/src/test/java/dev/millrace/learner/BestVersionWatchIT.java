package dev.millrace.learner;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.infra.broker.BrokerConfig;
import dev.millrace.infra.broker.EmbeddedBroker;
import dev.millrace.log.Alarm;
import dev.millrace.log.LogConnection;
import dev.millrace.log.run.RunLog;
import dev.millrace.log.run.TopicsConfig;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.weights.Dtype;
import dev.millrace.policy.weights.Weights;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.SamplingParameters;
import dev.millrace.schemas.VersionEvaluation;
import dev.millrace.schemas.run.EvaluationKey;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.weights.BrokenVersionPolicy;
import dev.millrace.weights.PolicyFeed;
import dev.millrace.weights.VersionFacts;
import dev.millrace.weights.VersionUnavailableException;
import dev.millrace.weights.VersionWriter;
import dev.millrace.weights.WeightsConfig;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.nio.file.Path;
import java.time.Clock;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** A broker that removes by size, as often as a second; each version is half a megabyte, and whole. */
@Timeout(900)
class BestVersionWatchIT {
    private static final DecoderShape SHAPE = new DecoderShape(4000, 32, 1, 2, 1, 16, 64, 32, 10_000, 1e-6, true, true);
    private static final WeightsConfig CONFIG = new WeightsConfig(
            "kafka", "", Dtype.F32, 1, 1, 0, 30_000, BrokenVersionPolicy.STOP, 65_536, 100, 10_000, 10_000);
    private static final long VERSION_BYTES = 4L * SHAPE.parameterCount();
    private static final long KEPT_BYTES = 8 * VERSION_BYTES;
    private static final Duration LIMIT = Duration.ofMinutes(5);

    @TempDir
    private Path directory;

    private EmbeddedBroker broker;
    private RunLog log;
    private LogConnection connection;
    private KafkaProducer<byte[], byte[]> producer;
    private VersionWriter writer;
    private final Weights weights = Weights.random(SHAPE, 1);
    private long published;

    @BeforeEach
    void openRun() throws Exception {
        broker = EmbeddedBroker.start(
                directory.resolve("broker"),
                BrokerConfig.defaults(),
                Map.of("log.retention.check.interval.ms", "500", "log.initial.task.delay.ms", "100"));
        log = RunLog.open(
                Map.of("bootstrap.servers", broker.bootstrapServers()),
                new RunTopics("best."),
                new RunIdentity("run-1", 0, "policy"),
                TopicsConfig.defaults(),
                "",
                Clock.systemUTC());
        connection = log.connection().reachedBy("--run-dir runs/run-1");
        alter("segment.bytes", 1 << 20);
        producer = new KafkaProducer<>(
                connection.producer(Map.of("transactional.id", connection.scoped("learner"))),
                new ByteArraySerializer(),
                new ByteArraySerializer());
        producer.initTransactions();
        writer = new VersionWriter(connection, producer, CONFIG);
    }

    @AfterEach
    void closeRun() {
        producer.close(Duration.ZERO);
        log.close();
        broker.close();
    }

    @Test
    void shouldSayBeforeAndAfterKafkaTakesTheBestVersion() throws Exception {
        alter("retention.bytes", KEPT_BYTES);
        publish(3);
        evaluated(0, 0.25);
        evaluated(1, 0.75);
        evaluated(2, 0.5);
        try (PolicyFeed feed = new PolicyFeed(connection, CONFIG);
                VersionRetention retention = new VersionRetention(
                        connection, CONFIG, List.of(), new SimpleMeterRegistry(), Clock.systemUTC())) {
            retention.start();
            publish(4); // versions 1 to 6 are three quarters of the kept bytes
            await(() -> connection.alarms().active(BestVersionWatch.AT_RISK) == 1);
            Alarm atRisk = connection.alarms().active().stream()
                    .filter(alarm -> alarm.name().equals(BestVersionWatch.AT_RISK))
                    .findFirst()
                    .orElseThrow();
            assertThat(atRisk.subject()).isEqualTo("version 1");
            assertThat(atRisk.sentence())
                    .startsWith("version 1, the best on held-out prompts (reward 0.750), is about to be deleted: ")
                    .contains(String.format("Kafka keeps %,d on best.weights", KEPT_BYTES));
            assertThat(atRisk.remedy())
                    .contains("--entity-name best.weights --add-config retention.bytes=-1")
                    .endsWith("millrace model export --run-dir runs/run-1 --version 1 --to DIR");
            assertThat(feed.load(1)).as("said while it is there").isNotNull();

            publish(12);
            await(() -> connection.alarms().active(BestVersionWatch.LOST) == 1
                    && connection.alarms().active(BestVersionWatch.AT_RISK) == 0);
            assertThat(connection.alarms().active()).singleElement().satisfies(lost -> {
                assertThat(lost.subject()).isEqualTo("version 1");
                assertThat(lost.sentence())
                        .startsWith("version 1, the best on held-out prompts (reward 0.750), is no longer kept: its"
                                + " weights were on best.weights from offset ")
                        .contains("retention.bytes");
            });
            assertThatThrownBy(() -> feed.load(1)).isInstanceOf(VersionUnavailableException.class);

            evaluated(18, 0.875);
            await(() -> connection.alarms().active().isEmpty());
            assertThat(feed.load(18)).as("another is the best, and is there").isNotNull();
        }
    }

    @Test
    void shouldSayNothingWhereTheTopicHasNoLimit() throws Exception {
        alter("retention.bytes", -1);
        publish(20);
        evaluated(1, 0.75);
        try (PolicyFeed feed = new PolicyFeed(connection, CONFIG);
                Admin admin = Admin.create(connection.admin())) {
            feed.awaitAtLeast(19, LIMIT);
            new BestVersionWatch(connection, admin, feed, 10_000).look(Optional.of(evaluation(1, 0.75)));

            assertThat(feed.stretch(1).orElseThrow())
                    .satisfies(stretch -> assertThat(stretch.isKept()).isTrue())
                    .satisfies(stretch -> assertThat(stretch.bytesSince()).isEqualTo(19 * VERSION_BYTES));
        }
        assertThat(connection.alarms().active()).isEmpty();
    }

    private void publish(int count) {
        for (int i = 0; i < count; i++) {
            producer.beginTransaction();
            PolicyVersion manifest = writer.writeWithoutState(
                    new VersionFacts(published, published - 1, "t", 0, 0, System.currentTimeMillis()), weights, 0);
            producer.commitTransaction();
            writer.continueFrom(manifest, weights);
            published++;
        }
    }

    private static VersionEvaluation evaluation(long version, double reward) {
        return VersionEvaluation.newBuilder()
                .setRunId("run-1")
                .setEpoch(0)
                .setPolicyId("policy")
                .setVersion(version)
                .setWeightsSha256("00")
                .setDataSha256("11")
                .setSamplesPerPrompt(1)
                .setSampling(new SamplingParameters(1.0, 0, 1.0, 8, 7L, false, 0, 0.0, false))
                .setCorrectAbove(0)
                .setPrompts(List.of())
                .setRewardMean(reward)
                .setPassAtK(List.of())
                .setDifficulties(List.of())
                .setTruncatedShare(0)
                .setFailed(0)
                .setStartedAtMs(version)
                .setFinishedAtMs(version)
                .build();
    }

    private void evaluated(long version, double reward) {
        VersionEvaluation record = evaluation(version, reward);
        String topic = connection.topics().evaluations();
        producer.beginTransaction();
        producer.send(new ProducerRecord<>(
                topic,
                0,
                EvaluationKey.of(record).bytes(),
                AvroSerde.of(VersionEvaluation.class, connection.registry())
                        .serializer()
                        .serialize(topic, record)));
        producer.commitTransaction();
    }

    private void alter(String key, long value) throws Exception {
        try (Admin admin = Admin.create(connection.admin())) {
            admin.incrementalAlterConfigs(Map.of(
                            new ConfigResource(
                                    ConfigResource.Type.TOPIC,
                                    connection.topics().weights()),
                            List.of(new AlterConfigOp(
                                    new ConfigEntry(key, Long.toString(value)), AlterConfigOp.OpType.SET))))
                    .all()
                    .get(LIMIT.toSeconds(), TimeUnit.SECONDS);
        }
    }

    private static void await(BooleanSupplier condition) {
        long deadline = System.nanoTime() + LIMIT.toNanos();
        while (!condition.getAsBoolean()) {
            assertThat(System.nanoTime()).as("waited for %s", LIMIT).isLessThan(deadline);
            LockSupport.parkNanos(5_000_000);
        }
    }
}
