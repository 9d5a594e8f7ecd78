package dev.millrace.benchmarks.engine;

import dev.millrace.generator.sampling.CacheOnSwap;
import dev.millrace.generator.sampling.GeneratorConfig;
import dev.millrace.generator.sampling.SlotTurnEngine;
import dev.millrace.generator.sampling.TurnOrder;
import dev.millrace.generator.sampling.WeightUpdate;
import dev.millrace.infra.broker.BrokerConfig;
import dev.millrace.infra.broker.BrokerProcess;
import dev.millrace.log.run.RunLog;
import dev.millrace.log.topics.TopicsConfig;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.Precision;
import dev.millrace.policy.decoder.TensorSpec;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.session.WeightPlacement;
import dev.millrace.policy.tokenizer.SymbolTokenizer;
import dev.millrace.policy.weights.Bfloat16;
import dev.millrace.policy.weights.Dtype;
import dev.millrace.policy.weights.Weights;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.SamplingParameters;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.weights.NewestWeights;
import dev.millrace.weights.PolicyFeed;
import dev.millrace.weights.VersionFacts;
import dev.millrace.weights.VersionWriter;
import dev.millrace.weights.WeightsConfig;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.io.IOException;
import java.nio.FloatBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Clock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.SplittableRandom;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * How long decoding stands still when a version is taken up: sequences sampled one token a call by the engine of a gateway, under
 * versions that are published through a broker while it samples. The time from one call to the next, where the
 * next is the first of a new version, less the median of such times in calm, is the pause.
 *
 * <p>Arguments: a {@link RandomLlama}, how many versions, and {@code in_flight/keep}, {@code in_flight/recompute} or
 * {@code multi_version}.
 */
public final class SwapPause {
    private static final int SEQUENCES = 8;
    private static final int PROMPT = 64;
    private static final int CALM_CALLS = 8;
    private static final long SAME_CALL_NANOS = 2_000_000;
    private static final Duration LIMIT = Duration.ofMinutes(5);

    private final List<Call> calls = new ArrayList<>();
    private long lastAt;
    private long lastVersion = -1;

    /** One call of the engine, as the sequences hear of it. */
    private record Call(long version, boolean isFirst, double ms) {}

    private SwapPause() {}

    public static void main(String[] arguments) throws IOException {
        String[] way = arguments[2].split("/");
        new SwapPause()
                .run(
                        RandomLlama.shape(arguments[0]),
                        Integer.parseInt(arguments[1]),
                        WeightUpdate.valueOf(way[0].toUpperCase(Locale.ROOT)),
                        way.length > 1 ? CacheOnSwap.valueOf(way[1].toUpperCase(Locale.ROOT)) : CacheOnSwap.KEEP);
    }

    private synchronized void heard(long version) {
        long now = System.nanoTime();
        if (now - lastAt < SAME_CALL_NANOS) {
            return; // another sequence of the same call
        }
        if (lastVersion >= 0) {
            calls.add(new Call(version, version != lastVersion, (now - lastAt) / 1e6));
        }
        lastAt = now;
        lastVersion = version;
        notifyAll();
    }

    private synchronized void awaitCalls(long version, int count) {
        try {
            while (calls.stream().filter(call -> call.version() == version).count() < count) {
                wait(1000);
            }
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private void run(DecoderShape shape, int versions, WeightUpdate update, CacheOnSwap cache) throws IOException {
        Path scratch = Files.createTempDirectory("swap-pause");
        Weights weights = Weights.random(shape, 1).as(Dtype.BF16);
        WeightsConfig config = WeightsConfig.defaults().with(Dtype.BF16);
        RunIdentity run = new RunIdentity("swap", 0, "policy");
        try (BrokerProcess broker =
                        BrokerProcess.start(scratch.resolve("broker"), BrokerConfig.defaults(), List.of("-Xmx512m"));
                RunLog log = RunLog.open(
                        Map.of("bootstrap.servers", broker.bootstrapServers()),
                        new RunTopics("swap."),
                        run,
                        TopicsConfig.defaults(),
                        "",
                        Clock.systemUTC());
                Producer<byte[], byte[]> producer = new KafkaProducer<>(
                        log.connection().producer(Map.of("transactional.id", "swap-learner")),
                        new ByteArraySerializer(),
                        new ByteArraySerializer());
                PolicyFeed feed = new PolicyFeed(log.connection(), config)) {
            producer.initTransactions();
            VersionWriter writer = new VersionWriter(log.connection(), producer, config);
            publish(writer, producer, weights, 0);
            try (NewestWeights newest = new NewestWeights(feed, LIMIT);
                    SlotTurnEngine engine = engine(shape, newest, update, cache)) {
                boolean isShort = update == WeightUpdate.MULTI_VERSION; // or nothing newer would ever be taken up
                for (int sequence = 0; sequence < SEQUENCES; sequence++) {
                    begin(engine, shape, sequence, isShort);
                }
                awaitCalls(0, CALM_CALLS);
                for (int version = 1; version <= versions; version++) {
                    change(weights, version);
                    publish(writer, producer, weights, version);
                    awaitCalls(version, CALM_CALLS);
                }
            }
        }
        report(shape, update, cache);
    }

    private static SlotTurnEngine engine(
            DecoderShape shape, NewestWeights newest, WeightUpdate update, CacheOnSwap cache) {
        GeneratorConfig defaults = GeneratorConfig.defaults();
        GeneratorConfig config = new GeneratorConfig(
                "swap",
                2 * SEQUENCES,
                defaults.threads(),
                shape.maxPositions(),
                1,
                defaults.prefillChunkTokens(),
                defaults.prefillTokensPerCall(),
                Precision.F32,
                WeightPlacement.AUTO,
                update,
                cache,
                defaults.versionWaitMs(),
                defaults.commitIntervalMs(),
                defaults.heartbeatMs(),
                defaults.drainMs(),
                defaults.firstVersionTimeoutMs(),
                defaults.commitTimeoutMs());
        return new SlotTurnEngine(
                Engine.cpu(),
                newest,
                shape,
                new SymbolTokenizer(List.of("a", "b")),
                config,
                new SimpleMeterRegistry(),
                Clock.systemUTC());
    }

    /** Begins a sequence, and another one in its place when it is finished. */
    private void begin(SlotTurnEngine engine, DecoderShape shape, int sequence, boolean isShort) {
        int[] prompt = new SplittableRandom(sequence)
                .ints(isShort ? 2 : PROMPT, 0, shape.vocabSize())
                .toArray();
        SamplingParameters sampling = SamplingParameters.newBuilder()
                .setTemperature(1)
                .setTopP(1)
                .setTopK(0)
                .setMaxTokens(isShort ? 12 + sequence : shape.maxPositions() - PROMPT)
                .setSeed(sequence)
                .build();
        engine.sample(
                        new TurnOrder(prompt, sampling, List.of(), List.of(), 0),
                        (tokens, logProbs) -> heard(engine.version()))
                .thenRun(() -> begin(engine, shape, sequence, isShort));
    }

    private static void publish(
            VersionWriter writer, Producer<byte[], byte[]> producer, Weights weights, long version) {
        producer.beginTransaction();
        PolicyVersion manifest = writer.writeWithoutState(
                new VersionFacts(version, version - 1, "swap", 0, 0, System.currentTimeMillis()), weights, version);
        producer.commitTransaction();
        writer.continueFrom(manifest, weights);
    }

    /** About as much as a step at a learning rate of 1e-5 changes. */
    private static void change(Weights weights, int version) {
        SplittableRandom random = new SplittableRandom(version);
        for (TensorSpec spec : weights.tensors().specs()) {
            FloatBuffer values = weights.tensor(spec.name());
            for (int i = random.nextInt(20); i < values.limit(); i += 20) {
                values.put(i, Bfloat16.value((short) (Bfloat16.of(values.get(i)) ^ 1)));
            }
        }
    }

    private void report(DecoderShape shape, WeightUpdate update, CacheOnSwap cache) {
        double[] calm = calls.stream()
                .filter(call -> !call.isFirst())
                .mapToDouble(Call::ms)
                .sorted()
                .toArray();
        double median = calm[calm.length / 2];
        double[] pauses = calls.stream()
                .filter(Call::isFirst)
                .mapToDouble(call -> call.ms() - median)
                .sorted()
                .toArray();
        System.out.printf(
                Locale.ROOT,
                "%.1f M parameters, %d sequences, %s, %s: %d swaps; a call takes %.0f ms (median; 5 %% above %.0f ms, most %.0f);"
                        + " the first call of a version takes longer by %.1f ms (median), %.1f at most: %s%n",
                shape.parameterCount() / 1e6,
                SEQUENCES,
                update,
                cache,
                pauses.length,
                median,
                calm[calm.length * 95 / 100],
                calm[calm.length - 1],
                pauses[pauses.length / 2],
                pauses[pauses.length - 1],
                Arrays.toString(Arrays.stream(pauses).mapToLong(Math::round).toArray()));
    }
}
