package dev.millrace.workloads.closed;

import dev.millrace.log.LogConnection;
import dev.millrace.log.run.RunLog;
import dev.millrace.log.run.TopicsConfig;
import dev.millrace.policy.decoder.TensorSpec;
import dev.millrace.policy.weights.Bfloat16;
import dev.millrace.policy.weights.Dtype;
import dev.millrace.policy.weights.Weights;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.TensorEntry;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.weights.PolicyFeed;
import dev.millrace.weights.VersionFacts;
import dev.millrace.weights.VersionWriter;
import dev.millrace.weights.WeightsConfig;
import dev.millrace.workloads.Sample;
import java.nio.FloatBuffer;
import java.time.Clock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Versions of a model in bfloat16 through a broker: the first whole, each later one as what changed, published and then loaded.
 *
 * <p>What changes is what an optimiser's step of a learning rate changes: it moves a master by the rate, and the weight, which
 * is the nearest bfloat16, by one place with the probability of the rate over the distance to the next bfloat16.
 */
final class VersionTrial {
    private static final Duration LIMIT = Duration.ofMinutes(10);

    private final Map<String, Object> client;
    private final double learningRate;
    private final SplittableRandom random = new SplittableRandom(11);

    /** @param client how the broker is reached */
    VersionTrial(Map<String, Object> client, double learningRate) {
        this.client = client;
        this.learningRate = learningRate;
    }

    /**
     * Publishes and loads.
     *
     * @param name of the run, and with a dot the prefix of its topics
     * @param weights of bfloat16; written
     * @param versions after the first
     */
    VersionRates measure(String name, Weights weights, int versions) {
        if (weights.dtype() != Dtype.BF16) {
            throw new IllegalArgumentException("versions are measured in bfloat16: " + weights.dtype());
        }
        // none of them an anchor but the first
        WeightsConfig config = anchoredOnce(WeightsConfig.defaults().with(Dtype.BF16), versions);
        RunTopics topics = new RunTopics(name + ".");
        RunIdentity run = new RunIdentity(name, 0, "policy");
        try (RunLog log = RunLog.open(client, topics, run, TopicsConfig.defaults(), "", Clock.systemUTC());
                Producer<byte[], byte[]> producer = producer(log.connection(), name);
                PolicyFeed feed = new PolicyFeed(log.connection(), config)) {
            VersionWriter writer = new VersionWriter(log.connection(), producer, config);
            long whole = 0;
            Weights taken = null;
            List<Double> bytes = new ArrayList<>();
            List<Double> publish = new ArrayList<>();
            List<Double> load = new ArrayList<>();
            for (int version = 0; version <= versions; version++) {
                if (version > 0) {
                    step(weights);
                }
                long began = System.nanoTime();
                producer.beginTransaction();
                PolicyVersion manifest = writer.writeWithoutState(
                        new VersionFacts(version, version - 1, "bench", 0, 0, System.currentTimeMillis()),
                        weights,
                        version);
                producer.commitTransaction();
                double published = seconds(began);
                writer.continueFrom(manifest, weights);
                feed.awaitAtLeast(version, LIMIT);
                Weights before = taken;
                long parent = version - 1L;
                began = System.nanoTime();
                taken = feed.load(version, known -> known == parent ? before : null);
                double loaded = seconds(began);
                if (version == 0) {
                    whole = bytes(manifest);
                } else {
                    bytes.add((double) bytes(manifest));
                    publish.add(published);
                    load.add(loaded);
                }
            }
            return new VersionRates(whole, Sample.of(bytes), Sample.of(publish), Sample.of(load));
        }
    }

    private static Producer<byte[], byte[]> producer(LogConnection connection, String name) {
        Producer<byte[], byte[]> producer = new KafkaProducer<>(
                connection.producer(Map.of(ProducerConfig.TRANSACTIONAL_ID_CONFIG, name + "-learner")),
                new ByteArraySerializer(),
                new ByteArraySerializer());
        producer.initTransactions();
        return producer;
    }

    private static WeightsConfig anchoredOnce(WeightsConfig config, int versions) {
        return new WeightsConfig(
                config.store(),
                config.optimizerStore(),
                config.dtype(),
                versions + 1,
                config.checkpointEvery(),
                config.keepVersions(),
                config.unservedAlarmMs(),
                config.onBrokenVersion(),
                config.chunkBytes(),
                config.keptManifests(),
                config.readTimeoutMs(),
                config.sendTimeoutMs());
    }

    private static double seconds(long began) {
        return (System.nanoTime() - began) / 1e9;
    }

    private static long bytes(PolicyVersion manifest) {
        long bytes = 0;
        for (TensorEntry tensor : manifest.getWeights().getTensors()) {
            Long encoded = tensor.getEncodedBytes();
            bytes += encoded == null ? tensor.getBytes() : encoded;
        }
        return bytes;
    }

    private void step(Weights weights) {
        for (TensorSpec spec : weights.tensors().specs()) {
            FloatBuffer values = weights.tensor(spec.name());
            for (int i = 0; i < values.limit(); i++) {
                short bits = Bfloat16.of(values.get(i));
                double place = Math.abs(Bfloat16.value((short) (bits + 1)) - (double) Bfloat16.value(bits));
                if (random.nextDouble() * place < learningRate) {
                    // up or down by one in magnitude; zero has no smaller magnitude
                    boolean grows = (bits & 0x7fff) == 0 || random.nextBoolean();
                    values.put(i, Bfloat16.value((short) (grows ? bits + 1 : bits - 1)));
                }
            }
        }
    }
}
