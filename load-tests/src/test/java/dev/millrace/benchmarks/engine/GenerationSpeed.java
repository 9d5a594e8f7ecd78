package dev.millrace.benchmarks.engine;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.session.DecodeInput;
import dev.millrace.policy.session.DecodeSession;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.session.KnownTokens;
import dev.millrace.policy.session.Sampling;
import dev.millrace.policy.weights.Weights;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.SplittableRandom;

/**
 * Sixteen sequences on one thread: their prompts forced one token a step, their prompts taken in by pieces, one prompt taken in
 * and copied to all, and tokens sampled behind them. Every round takes each once, in turns, so that what else runs on the machine
 * meets all of them alike.
 *
 * <p>Arguments: a {@link RandomLlama}, and how many rounds.
 */
public final class GenerationSpeed {
    private static final int SLOTS = 16;
    private static final int PROMPT = 256;
    private static final int SAMPLED = 32;
    private static final int PIECE = 256;
    private static final int PER_CALL = 4;

    private GenerationSpeed() {}

    public static void main(String[] arguments) {
        DecoderShape shape = RandomLlama.shape(arguments[0]);
        int rounds = Integer.parseInt(arguments[1]);
        System.out.printf(
                Locale.ROOT,
                "%s, %d processors, %s %s, %.1f M parameters, %d sequences, prompts of %d%n",
                System.getProperty("os.arch"),
                Runtime.getRuntime().availableProcessors(),
                System.getProperty("java.vm.name"),
                Runtime.version(),
                shape.parameterCount() / 1e6,
                SLOTS,
                PROMPT);
        Weights weights = Weights.random(shape, 1);
        int[][] prompts = new int[SLOTS][];
        SplittableRandom random = new SplittableRandom(2);
        Arrays.setAll(prompts, s -> random.ints(PROMPT, 0, shape.vocabSize()).toArray());
        try (DecodeSession session = new DecodeSession(Engine.cpu(), shape, SLOTS, PROMPT + SAMPLED, PER_CALL)) {
            Map<String, Runnable> ways = new LinkedHashMap<>();
            ways.put("prompts, one token a step", () -> forced(session, weights, prompts));
            ways.put("prompts, in pieces", () -> takenIn(session, weights, prompts, SLOTS));
            ways.put("one prompt for all", () -> {
                takenIn(session, weights, prompts, 1);
                for (int slot = 1; slot < SLOTS; slot++) {
                    session.copy(0, slot, PROMPT, prompts[0][PROMPT - 1]);
                }
            });
            ways.put("sampled", () -> sampled(session, weights, prompts));
            Map<String, double[]> seconds = new LinkedHashMap<>();
            ways.keySet().forEach(way -> seconds.put(way, new double[rounds]));
            for (int round = -1; round < rounds; round++) {
                for (Map.Entry<String, Runnable> way : ways.entrySet()) {
                    long start = System.nanoTime();
                    way.getValue().run();
                    if (round >= 0) {
                        Objects.requireNonNull(seconds.get(way.getKey()))[round] = (System.nanoTime() - start) / 1e9;
                    }
                }
            }
            double[] first = Objects.requireNonNull(seconds.get("prompts, one token a step"));
            seconds.forEach((way, times) -> report(way, times, first));
        }
    }

    private static void report(String way, double[] times, double[] first) {
        double[] ratios = new double[times.length];
        Arrays.setAll(ratios, round -> first[round] / times[round]);
        Arrays.sort(ratios);
        double[] sorted = times.clone();
        Arrays.sort(sorted);
        int tokens = SLOTS * (way.equals("sampled") ? SAMPLED : PROMPT);
        System.out.printf(
                Locale.ROOT,
                "%-26s %9.0f tokens/s (%.0f to %.0f)%s%n",
                way,
                tokens / sorted[times.length / 2],
                tokens / sorted[times.length - 1],
                tokens / sorted[0],
                way.equals("sampled")
                        ? ""
                        : String.format(
                                Locale.ROOT,
                                ", %.1f times the first (%.1f to %.1f)",
                                ratios[times.length / 2],
                                ratios[0],
                                ratios[times.length - 1]));
    }

    private static void forced(DecodeSession session, Weights weights, int[][] prompts) {
        for (int slot = 0; slot < SLOTS; slot++) {
            session.reset(slot, prompts[slot][0]);
        }
        DecodeInput in = new DecodeInput(SLOTS, PER_CALL);
        for (int at = 1; at < PROMPT; at += PER_CALL) {
            in.clear();
            int steps = Math.min(PER_CALL, PROMPT - at);
            for (int slot = 0; slot < SLOTS; slot++) {
                in.activate(slot, steps, Sampling.of(1));
                for (int step = 0; step < steps; step++) {
                    in.force(step, slot, prompts[slot][at + step]);
                }
            }
            session.advance(weights, in);
        }
    }

    private static void takenIn(DecodeSession session, Weights weights, int[][] prompts, int count) {
        for (int slot = 0; slot < count; slot++) {
            session.reset(slot, prompts[slot][0]);
        }
        for (int at = 1; at < PROMPT; at += PIECE) {
            List<KnownTokens> known = new ArrayList<>();
            for (int slot = 0; slot < count; slot++) {
                known.add(new KnownTokens(slot, Arrays.copyOfRange(prompts[slot], at, Math.min(PROMPT, at + PIECE))));
            }
            session.prefill(weights, known);
        }
    }

    private static void sampled(DecodeSession session, Weights weights, int[][] prompts) {
        for (int slot = 0; slot < SLOTS; slot++) {
            session.cut(slot, PROMPT, prompts[slot][PROMPT - 1]);
        }
        DecodeInput in = new DecodeInput(SLOTS, PER_CALL);
        for (int slot = 0; slot < SLOTS; slot++) {
            in.activate(slot, PER_CALL, Sampling.of(1));
            for (int step = 0; step < PER_CALL; step++) {
                in.sample(step, slot, (slot * PER_CALL + step) / (float) (SLOTS * PER_CALL));
            }
        }
        for (int call = 0; call < SAMPLED / PER_CALL; call++) {
            session.advance(weights, in);
        }
    }
}
