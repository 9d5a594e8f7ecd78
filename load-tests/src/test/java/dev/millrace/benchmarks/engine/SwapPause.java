package dev.millrace.benchmarks.engine;

import dev.millrace.generator.sampling.CacheOnSwap;
import dev.millrace.generator.sampling.GeneratorConfig;
import dev.millrace.generator.sampling.SlotTurnEngine;
import dev.millrace.generator.sampling.TurnEngine;
import dev.millrace.generator.sampling.TurnOrder;
import dev.millrace.generator.sampling.WeightUpdate;
import dev.millrace.infra.broker.BrokerConfig;
import dev.millrace.infra.broker.BrokerProcess;
import dev.millrace.log.run.RunLog;
import dev.millrace.log.run.TopicsConfig;
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
import java.util.TreeMap;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * How long decoding stands still while a version is taken up: sequences sampled one token a call by the engine of a gateway, under
 * versions that are published through a broker while it samples.
 *
 * <p>Two times of each swap are reported, next to what they are in calm: the longest from one call of the engine to the next, which is how long
 * nobody's tokens come; and the longest that a single sequence waits for its next token. A swap lasts from the first call after it is taken up to
 * the last call in which a sequence continues with the version before.
 *
 * <p>Arguments: a {@link RandomLlama}, how many versions, {@code in_flight/keep}, {@code in_flight/recompute} or
 * {@code multi_version}, and the milliseconds of {@code generator.swap_pause_ms} (default: its own).
 */
public final class SwapPause {
    private static final int SEQUENCES = 8;
    private static final int PROMPT = 64;
    private static final int CALM_CALLS = 8;
    private static final long SAME_CALL_NANOS = 2_000_000;
    private static final Duration LIMIT = Duration.ofMinutes(5);

    private final List<Gap> calls = new ArrayList<>();
    private final List<Gap> waits = new ArrayList<>();
    private final long[] lastOf = new long[SEQUENCES];
    private long lastAt;
    private long lastVersion = -1;
    private boolean wasSwapping;

    /** From one call of the engine, or one token of a sequence, to the next; {@code swap} is the version that is taken up meanwhile, -1 in calm. */
    private record Gap(long version, long swap, double ms) {}

    private SwapPause() {}

    public static void main(String[] arguments) throws IOException {
        String[] way = arguments[2].split("/");
        new SwapPause()
                .run(
                        RandomLlama.shape(arguments[0]),
                        Integer.parseInt(arguments[1]),
                        WeightUpdate.valueOf(way[0].toUpperCase(Locale.ROOT)),
                        way.length > 1 ? CacheOnSwap.valueOf(way[1].toUpperCase(Locale.ROOT)) : CacheOnSwap.KEEP,
                        arguments.length > 3
                                ? Integer.parseInt(arguments[3])
                                : GeneratorConfig.defaults().swapPauseMs());
    }

    private synchronized void heard(int sequence, TurnEngine engine) {
        long now = System.nanoTime();
        long version = engine.version();
        boolean isNew = lastVersion >= 0 && version != lastVersion;
        boolean isSwapping = engine.olderVersion().isPresent();
        long swap = isNew || isSwapping || wasSwapping ? version : -1;
        if (lastOf[sequence] > 0) {
            waits.add(new Gap(version, swap, (now - lastOf[sequence]) / 1e6));
        }
        lastOf[sequence] = now;
        if (now - lastAt >= SAME_CALL_NANOS) { // else another sequence of the same call
            if (lastVersion >= 0) {
                calls.add(new Gap(version, swap, (now - lastAt) / 1e6));
            }
            wasSwapping = isSwapping;
            lastVersion = version;
        }
        lastAt = now;
        notifyAll();
    }

    private synchronized void awaitCalls(long version, int count) {
        try {
            while (calls.stream()
                            .filter(call -> call.version() == version && call.swap() < 0)
                            .count()
                    < count) {
                wait(1000);
            }
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private void run(DecoderShape shape, int versions, WeightUpdate update, CacheOnSwap cache, int pauseMs)
            throws IOException {
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
                    TurnEngine engine = engine(shape, newest, update, cache, pauseMs)) {
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

    private static TurnEngine engine(
            DecoderShape shape, NewestWeights newest, WeightUpdate update, CacheOnSwap cache, int pauseMs) {
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
                pauseMs,
                defaults.versionWaitMs(),
                defaults.commitIntervalMs(),
                defaults.heartbeatMs(),
                defaults.drainMs(),
                defaults.firstVersionTimeoutMs(),
                defaults.commitTimeoutMs());
        return SlotTurnEngine.factory(
                        Engine.cpu(),
                        new SymbolTokenizer(List.of("a", "b")),
                        config,
                        0,
                        new SimpleMeterRegistry(),
                        Clock.systemUTC())
                .open(newest, shape);
    }

    /** Begins a sequence, and another one in its place when it is finished. */
    private void begin(TurnEngine engine, DecoderShape shape, int sequence, boolean isShort) {
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
                        (tokens, logProbs) -> heard(sequence, engine))
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
        System.out.printf(
                Locale.ROOT,
                "%.1f M parameters, %d sequences, %s, %s%n",
                shape.parameterCount() / 1e6,
                SEQUENCES,
                update,
                cache);
        say("from one call of the engine to the next", calls);
        say("from one token of a sequence to its next", waits);
    }

    private static void say(String what, List<Gap> gaps) {
        double[] calm = gaps.stream()
                .filter(gap -> gap.swap() < 0)
                .mapToDouble(Gap::ms)
                .sorted()
                .toArray();
        Map<Long, Double> longest = new TreeMap<>();
        gaps.stream().filter(gap -> gap.swap() >= 0).forEach(gap -> longest.merge(gap.swap(), gap.ms(), Math::max));
        double[] swaps = longest.values().stream()
                .mapToDouble(Double::doubleValue)
                .sorted()
                .toArray();
        double median = calm[calm.length / 2];
        System.out.printf(
                Locale.ROOT,
                "%s: %.0f ms in calm (median; 5 %% above %.0f, most %.0f); the longest of a swap %.0f (median), %.0f at most,"
                        + " less the median without swaps: %s%n",
                what,
                median,
                calm[calm.length * 95 / 100],
                calm[calm.length - 1],
                swaps[swaps.length / 2],
                swaps[swaps.length - 1],
                Arrays.toString(Arrays.stream(swaps)
                        .mapToLong(ms -> Math.round(ms - median))
                        .toArray()));
    }
}
