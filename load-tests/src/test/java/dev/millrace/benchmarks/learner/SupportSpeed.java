package dev.millrace.benchmarks.learner;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.session.DecodeInput;
import dev.millrace.policy.session.DecodeSession;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.session.GradientSession;
import dev.millrace.policy.session.SampledSupport;
import dev.millrace.policy.session.Sampling;
import dev.millrace.policy.session.SequenceBatch;
import dev.millrace.policy.weights.Gradients;
import dev.millrace.policy.weights.Weights;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.SplittableRandom;

/**
 * What a kept sampling mask costs: the gradient over the whole vocabulary and over the kept tokens alone, and decoding that
 * records nothing, the kept tokens, or the likeliest ones. One thread; every round takes each variant once, so that what
 * else runs on the machine meets all of them alike. The ratio is to the first variant, of the least times.
 */
public final class SupportSpeed {
    private static final int WARM_UP = 3;
    private static final int ROUNDS = 21;
    private static final int SEQUENCES = 64;
    private static final int PROMPT = 16;
    private static final int RESPONSE = 112;

    private SupportSpeed() {}

    public static void main(String[] arguments) {
        System.out.println("machine: " + System.getProperty("os.arch") + ", "
                + Runtime.getRuntime().availableProcessors() + " processors, " + System.getProperty("java.vm.name")
                + " " + Runtime.version());
        for (int vocabulary : new int[] {16, 4096}) {
            DecoderShape shape =
                    new DecoderShape(vocabulary, 128, 2, 4, 4, 32, 256, PROMPT + RESPONSE, 10_000, 1e-6, true, false);
            gradient(shape);
            decode(shape);
        }
    }

    private static void gradient(DecoderShape shape) {
        Map<String, SequenceBatch> variants = new LinkedHashMap<>();
        variants.put("gradient, whole vocabulary", batch(shape, 0));
        for (int kept : new int[] {5, 50}) {
            if (kept < shape.vocabSize()) {
                variants.put("gradient, " + kept + " kept", batch(shape, kept));
            }
        }
        Weights weights = Weights.random(shape, 2);
        Gradients gradients = new Gradients(shape);
        float[] ones = new float[SEQUENCES * RESPONSE];
        Arrays.fill(ones, 1f);
        float[] temperatures = new float[SEQUENCES];
        Arrays.fill(temperatures, 1f);
        Map<String, Runnable> runs = new LinkedHashMap<>();
        try (GradientSession session = new GradientSession(Engine.cpu(), shape, 2048)) {
            variants.forEach((name, batch) -> runs.put(
                    name,
                    () -> session.accumulate(weights, batch, temperatures, ones, new float[ones.length], gradients)));
            compare(shape, runs);
        }
    }

    private static SequenceBatch batch(DecoderShape shape, int kept) {
        SplittableRandom random = new SplittableRandom(1);
        int[][] tokens = new int[SEQUENCES][];
        int[] firstScored = new int[SEQUENCES];
        SampledSupport[] support = new SampledSupport[SEQUENCES];
        for (int s = 0; s < SEQUENCES; s++) {
            tokens[s] = random.ints(PROMPT + RESPONSE, 0, shape.vocabSize()).toArray();
            firstScored[s] = PROMPT;
            if (kept > 0) {
                int[] counts = new int[RESPONSE];
                Arrays.fill(counts, kept);
                int[] ids = new int[kept * RESPONSE];
                for (int i = 0; i < ids.length; i++) {
                    ids[i] = (tokens[s][PROMPT + i / kept] + i % kept) % shape.vocabSize();
                }
                support[s] = new SampledSupport(counts, ids);
            }
        }
        return new SequenceBatch(tokens, firstScored, support);
    }

    private static void decode(DecoderShape shape) {
        Weights weights = Weights.random(shape, 2);
        Map<String, Runnable> runs = new LinkedHashMap<>();
        try (DecodeSession session = new DecodeSession(Engine.cpu(), shape, SEQUENCES, shape.maxPositions(), 8)) {
            runs.put("decode, top-p 0.9", decoding(session, weights, new Sampling(1, 0, 0.9f)));
            runs.put("decode, top-p 0.9, kept", decoding(session, weights, new Sampling(1, 0, 0.9f, 0, true, 0)));
            runs.put("decode, top-k 5", decoding(session, weights, new Sampling(1, 5, 1)));
            runs.put("decode, top-k 5, kept", decoding(session, weights, new Sampling(1, 5, 1, 0, true, 0)));
            runs.put("decode, plain", decoding(session, weights, Sampling.of(1)));
            runs.put("decode, plain, 8 likeliest", decoding(session, weights, new Sampling(1, 0, 1, 0, false, 8)));
            compare(shape, runs);
        }
    }

    /** Sixty-four tokens for every slot. */
    private static Runnable decoding(DecodeSession session, Weights weights, Sampling sampling) {
        DecodeInput in = new DecodeInput(SEQUENCES, 8);
        for (int slot = 0; slot < SEQUENCES; slot++) {
            in.activate(slot, 8, sampling);
            for (int step = 0; step < 8; step++) {
                in.sample(step, slot, (slot * 8 + step) / (8f * SEQUENCES));
            }
        }
        return () -> {
            for (int slot = 0; slot < SEQUENCES; slot++) {
                session.reset(slot, slot % 16);
            }
            for (int call = 0; call < 8; call++) {
                session.advance(weights, in);
            }
        };
    }

    private static void compare(DecoderShape shape, Map<String, Runnable> runs) {
        Map<String, double[]> seconds = new LinkedHashMap<>();
        runs.keySet().forEach(name -> seconds.put(name, new double[ROUNDS]));
        for (int round = -WARM_UP; round < ROUNDS; round++) {
            for (Map.Entry<String, Runnable> run : runs.entrySet()) {
                long start = System.nanoTime();
                run.getValue().run();
                if (round >= 0) {
                    Objects.requireNonNull(seconds.get(run.getKey()))[round] = (System.nanoTime() - start) / 1e9;
                }
            }
        }
        double[] first = seconds.values().iterator().next();
        Arrays.sort(first);
        seconds.forEach((name, times) -> {
            Arrays.sort(times);
            System.out.printf(
                    Locale.ROOT,
                    "vocabulary %5d: %-28s %8.1f ms median of %d, %8.1f least; %.2f of the first%n",
                    shape.vocabSize(),
                    name,
                    times[ROUNDS / 2] * 1e3,
                    ROUNDS,
                    times[0] * 1e3,
                    times[0] / first[0]);
        });
    }
}
