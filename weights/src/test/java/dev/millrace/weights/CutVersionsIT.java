package dev.millrace.weights;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.infra.broker.EmbeddedBroker;
import dev.millrace.log.LogConnection;
import dev.millrace.log.run.RunLog;
import dev.millrace.log.run.TopicsConfig;
import dev.millrace.policy.autodiff.AdamW;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.TensorSpec;
import dev.millrace.policy.decoder.WholeTensor;
import dev.millrace.policy.weights.Dtype;
import dev.millrace.policy.weights.Gradients;
import dev.millrace.policy.weights.Weights;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.TensorEncoding;
import dev.millrace.schemas.TensorEntry;
import dev.millrace.schemas.run.RunTopics;
import java.nio.FloatBuffer;
import java.nio.file.Path;
import java.time.Clock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Versions of a decoder whose matrices lie in several tensors: on the log each of these is a tensor as any other. */
@Timeout(900)
class CutVersionsIT {
    private static final DecoderShape SHAPE = SmallDecoder.SHAPE.within(40);
    private static final Duration LIMIT = Duration.ofMinutes(5);

    @TempDir
    private static Path directory;

    private static EmbeddedBroker broker;

    @BeforeAll
    static void startBroker() {
        broker = EmbeddedBroker.start(directory);
    }

    @AfterAll
    static void stopBroker() {
        broker.close();
    }

    @ParameterizedTest
    @EnumSource(Dtype.class)
    void shouldGoOnFromAnchorsDeltasAndStateThatLieInPieces(Dtype dtype) {
        WeightsConfig config = new WeightsConfig(
                "kafka", "", dtype, 4, 1, 0, 30_000, BrokenVersionPolicy.STOP, 256, 100, 10_000, 10_000);
        try (RunLog log = RunLog.open(
                Map.of("bootstrap.servers", broker.bootstrapServers()),
                new RunTopics(dtype + "."),
                SmallDecoder.RUN,
                TopicsConfig.defaults(),
                "",
                Clock.systemUTC())) {
            LogConnection connection = log.connection();
            Weights weights = Weights.random(SHAPE, 1).as(dtype);
            Weights whole = Weights.random(SmallDecoder.SHAPE, 1).as(dtype);
            AdamW optimizer = new AdamW(new AdamW.Config(0.9, 0.999, 1e-8, 0), SHAPE);
            AdamW beside = new AdamW(new AdamW.Config(0.9, 0.999, 1e-8, 0), SmallDecoder.SHAPE);
            List<PolicyVersion> manifests = new ArrayList<>();
            try (KafkaProducer<byte[], byte[]> producer = producer(connection)) {
                VersionWriter writer = new VersionWriter(connection, producer, config);
                for (int version = 0; version < 3; version++) {
                    manifests.add(publish(writer, producer, version, weights, optimizer.state()));
                    assertThat(manifests.get(version).getWeights().getSha256())
                            .as("one behind the other they are the whole, so the identity is the same")
                            .isEqualTo(VersionHash.of(whole));
                    step(optimizer, weights);
                    step(beside, whole);
                }
            }
            assertThat(ShapeText.parse(manifests.get(0).getShape())).isEqualTo(SHAPE);
            assertThat(manifests.get(0).getWeights().getTensors())
                    .extracting(TensorEntry::getName)
                    .startsWith(
                            "model.embed_tokens.weight[0]",
                            "model.embed_tokens.weight[1]",
                            "model.embed_tokens.weight[2]");
            assertThat(manifests.get(2).getWeights().getTensors())
                    .extracting(TensorEntry::getEncoding)
                    .contains(TensorEncoding.DELTA);
            assertThat(manifests.get(2).getWeights().getBaseVersion()).isEqualTo(1);

            try (PolicyFeed feed = new PolicyFeed(connection, config);
                    KafkaProducer<byte[], byte[]> producer = producer(connection)) {
                feed.awaitAtLeast(2, LIMIT);
                Weights restarted = feed.load(2);
                AdamW.State state = feed.loadOptimizer(2);
                assertThat(state.first().specs()).isEqualTo(SHAPE.tensors());
                assertThat(VersionHash.of(restarted))
                        .isEqualTo(manifests.get(2).getWeights().getSha256());

                AdamW again = new AdamW(new AdamW.Config(0.9, 0.999, 1e-8, 0), SHAPE);
                again.adopt(state);
                step(again, restarted);
                assertThat(VersionHash.of(restarted)).isEqualTo(VersionHash.of(weights));
                VersionWriter writer = new VersionWriter(connection, producer, config);
                writer.continueFrom(manifests.get(2), feed.load(2));
                PolicyVersion next = publish(writer, producer, 3, restarted, again.state());
                assertThat(next.getWeights().getBaseVersion())
                        .as("a delta against what was there before the restart")
                        .isEqualTo(2);
                feed.awaitAtLeast(3, LIMIT);
                assertThat(VersionHash.of(feed.load(3))).isEqualTo(VersionHash.of(whole));
            }
        }
    }

    private static PolicyVersion publish(
            VersionWriter writer,
            KafkaProducer<byte[], byte[]> producer,
            int version,
            Weights weights,
            AdamW.State optimizer) {
        producer.beginTransaction();
        PolicyVersion manifest = writer.write(new VersionFacts(version, version - 1, "t", 0, 0, 0), weights, optimizer);
        producer.commitTransaction();
        writer.continueFrom(manifest, weights);
        return manifest;
    }

    private static KafkaProducer<byte[], byte[]> producer(LogConnection connection) {
        KafkaProducer<byte[], byte[]> made = new KafkaProducer<>(
                connection.producer(Map.of("transactional.id", connection.scoped("learner"))),
                new ByteArraySerializer(),
                new ByteArraySerializer());
        made.initTransactions();
        return made;
    }

    /** Steps with a gradient that depends only on the position in the whole tensor, not on how the tensor is split. */
    private static void step(AdamW optimizer, Weights weights) {
        Gradients gradients = new Gradients(weights.shape());
        for (WholeTensor whole : weights.shape().wholes()) {
            int number = 0;
            for (TensorSpec piece : whole.pieces()) {
                FloatBuffer gradient = gradients.tensor(piece.name());
                while (gradient.hasRemaining()) {
                    gradient.put(number++ % 5 == 0 ? 0.01f * number : 0);
                }
            }
        }
        optimizer.step(weights, gradients, 1e-2);
    }
}
