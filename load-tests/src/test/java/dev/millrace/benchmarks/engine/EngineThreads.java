package dev.millrace.benchmarks.engine;

import dev.millrace.generator.environment.Environments;
import dev.millrace.generator.environment.FixedAnswer;
import dev.millrace.generator.sampling.GeneratorConfig;
import dev.millrace.generator.sampling.RolloutSampler;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.weights.Weights;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.SamplingParameters;
import dev.millrace.schemas.packed.PackedInts;
import java.time.Clock;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.SplittableRandom;

/**
 * Rollouts by a generator's slots with one engine thread and with several, each in every round, so that what else runs on the machine
 * meets all of them alike.
 *
 * <p>Arguments: a {@link RandomLlama} or {@code small}, rounds, most threads.
 */
public final class EngineThreads {
    private static final int SLOTS = 16;
    private static final int SAMPLED = 32;
    private static final DecoderShape SMALL =
            new DecoderShape(64, 64, 2, 4, 4, 16, 128, 128, 10_000, 1e-6, false, false);

    private EngineThreads() {}

    public static void main(String[] arguments) {
        DecoderShape shape = arguments[0].equals("small") ? SMALL : RandomLlama.shape(arguments[0]);
        int rounds = Integer.parseInt(arguments[1]);
        int most = Integer.parseInt(arguments[2]);
        Weights weights = Weights.random(shape, 1);
        List<RolloutSampler> samplers = new ArrayList<>();
        for (int threads = 1; threads <= most; threads++) {
            samplers.add(new RolloutSampler(
                    Engine.cpu(), shape, Environments.builtIn(), config(threads), Clock.systemUTC()));
        }
        int groups = arguments[0].equals("small") ? 64 : 4;
        List<PromptRequest> requests = requests(shape, groups);
        double[][] rates = new double[most][rounds];
        for (int round = -1; round < rounds; round++) {
            for (int threads = 1; threads <= most; threads++) {
                long began = System.nanoTime();
                long tokens = samplers.get(threads - 1).sample(requests, weights, 0).stream()
                        .mapToLong(rollout -> PackedInts.length(rollout.getResponseTokens()))
                        .sum();
                if (round >= 0) {
                    rates[threads - 1][round] = tokens / ((System.nanoTime() - began) / 1e9);
                }
            }
        }
        for (int threads = 1; threads <= most; threads++) {
            double[] ratios = new double[rounds];
            for (int round = 0; round < rounds; round++) {
                ratios[round] = rates[threads - 1][round] / rates[0][round];
            }
            double[] sorted = rates[threads - 1].clone();
            Arrays.sort(sorted);
            Arrays.sort(ratios);
            System.out.printf(
                    Locale.ROOT,
                    "%.1f M parameters, %d slots, %d threads: %.0f tokens/s (%.0f to %.0f), %.2f times one thread (%.2f to %.2f)%n",
                    shape.parameterCount() / 1e6,
                    SLOTS,
                    threads,
                    sorted[rounds / 2],
                    sorted[0],
                    sorted[rounds - 1],
                    ratios[rounds / 2],
                    ratios[0],
                    ratios[rounds - 1]);
        }
        samplers.forEach(RolloutSampler::close);
    }

    private static GeneratorConfig config(int threads) {
        GeneratorConfig defaults = GeneratorConfig.defaults();
        return new GeneratorConfig(
                "threads",
                SLOTS,
                threads,
                64,
                defaults.tokensPerCall(),
                defaults.prefillChunkTokens(),
                defaults.prefillTokensPerCall(),
                defaults.precision(),
                defaults.weightPlacement(),
                defaults.weightUpdate(),
                defaults.cacheOnSwap(),
                defaults.swapPauseMs(),
                defaults.versionWaitMs(),
                defaults.commitIntervalMs(),
                defaults.heartbeatMs(),
                defaults.drainMs(),
                defaults.firstVersionTimeoutMs(),
                defaults.commitTimeoutMs());
    }

    private static List<PromptRequest> requests(DecoderShape shape, int groups) {
        SplittableRandom random = new SplittableRandom(2);
        List<PromptRequest> requests = new ArrayList<>();
        for (long ordinal = 0; ordinal < groups; ordinal++) {
            requests.add(PromptRequest.newBuilder()
                    .setRunId("threads")
                    .setEpoch(0)
                    .setGroupId("g" + ordinal)
                    .setOrdinal(ordinal)
                    .setEnvironment(new FixedAnswer().name())
                    .setEnvironmentState("1".repeat(SAMPLED))
                    .setPromptTokens(
                            PackedInts.of(random.ints(16, 0, shape.vocabSize()).toArray()))
                    .setSamples(4)
                    .setSampling(new SamplingParameters(1.0, 0, 1.0, SAMPLED, 9L, false, 0, 0.0, false))
                    .setTokenizerHash("h")
                    .setAdmittedVersion(0)
                    .setReleasedAtMs(0)
                    .build());
        }
        return requests;
    }
}
