package dev.millrace.benchmarks.engine;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.Precision;
import dev.millrace.policy.session.DecodeInput;
import dev.millrace.policy.session.DecodeSession;
import dev.millrace.policy.session.DecodeSteps;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.session.HeldPrefix;
import dev.millrace.policy.session.KnownTokens;
import dev.millrace.policy.session.PreparedWeights;
import dev.millrace.policy.session.Sampling;
import dev.millrace.policy.weights.Weights;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.SplittableRandom;

/**
 * One conversation of four turns on one thread, each with something new to take in and an answer behind: taken in whole every time, and gone on
 * with from what was kept of the turn before. Every round takes each once, in turns, so that what else runs on the machine meets both
 * alike. Answers are the same tokens by the same draws, unless log-probs differ by more than a draw's distance from its bound; how much
 * they differ is said.
 *
 * <p>Arguments: a {@link RandomLlama}, how many rounds, and a {@link Precision}.
 */
public final class ConversationSpeed {
    private static final int TURNS = 4;
    private static final int FIRST = 256;
    private static final int NEW = 128;
    private static final int ANSWER = 64;
    private static final int PIECE = 256;
    private static final int PER_CALL = 4;

    private ConversationSpeed() {}

    /** What a conversation took, and what was said. */
    private record Played(double[] seconds, int[] tokens, float[] logProbs) {}

    public static void main(String[] arguments) {
        DecoderShape shape = RandomLlama.shape(arguments[0]);
        int rounds = Integer.parseInt(arguments[1]);
        Precision precision = Precision.valueOf(arguments[2].toUpperCase(Locale.ROOT));
        int longest = FIRST + TURNS * (NEW + ANSWER);
        System.out.printf(
                Locale.ROOT,
                "%s, %d processors, %s %s, %.1f M parameters, %s, %d turns, %d tokens at first, %d new ones and %d sampled a turn%n",
                System.getProperty("os.arch"),
                Runtime.getRuntime().availableProcessors(),
                System.getProperty("java.vm.name"),
                Runtime.version(),
                shape.parameterCount() / 1e6,
                precision,
                TURNS,
                FIRST,
                NEW,
                ANSWER);
        Weights weights = Weights.random(shape, 1);
        PreparedWeights prepared = new PreparedWeights(precision);
        prepared.prepare(weights);
        try (DecodeSession session = new DecodeSession(Engine.cpu(), shape, 1, longest, PER_CALL, prepared)) {
            double[][] whole = new double[TURNS + 1][rounds];
            double[][] kept = new double[TURNS + 1][rounds];
            double furthest = 0;
            int other = 0;
            for (int round = -1; round < rounds; round++) {
                Played one = play(session, weights, round, false);
                Played two = play(session, weights, round, true);
                int same = Arrays.mismatch(one.tokens(), two.tokens());
                same = same < 0 ? one.tokens().length : same;
                other += same < one.tokens().length ? 1 : 0;
                for (int i = 0; i < same; i++) {
                    furthest = Math.max(furthest, Math.abs(one.logProbs()[i] - two.logProbs()[i]));
                }
                for (int turn = 0; round >= 0 && turn <= TURNS; turn++) {
                    whole[turn][round] = one.seconds()[turn];
                    kept[turn][round] = two.seconds()[turn];
                }
            }
            for (int turn = 0; turn <= TURNS; turn++) {
                report(turn < TURNS ? "turn " + (turn + 1) : "all turns", whole[turn], kept[turn]);
            }
            System.out.printf(
                    Locale.ROOT,
                    "log-probs differ by at most %.1e; of %d conversations %d went another way from some token on; kept: %.1f kB a token%n",
                    furthest,
                    rounds + 1,
                    other,
                    session.prefixBytes(1) / 1024.0);
        }
    }

    private static void report(String what, double[] whole, double[] kept) {
        double[] ratios = new double[whole.length];
        Arrays.setAll(ratios, round -> whole[round] / kept[round]);
        Arrays.sort(ratios);
        System.out.printf(
                Locale.ROOT,
                "%-10s whole %7.0f ms, kept %7.0f ms, %.2f times (%.2f to %.2f)%n",
                what,
                1e3 * median(whole),
                1e3 * median(kept),
                ratios[ratios.length / 2],
                ratios[0],
                ratios[ratios.length - 1]);
    }

    private static double median(double[] values) {
        double[] sorted = values.clone();
        Arrays.sort(sorted);
        return sorted[sorted.length / 2];
    }

    private static Played play(DecodeSession session, Weights weights, int round, boolean keeps) {
        SplittableRandom random = new SplittableRandom(round);
        int vocabSize = weights.shape().vocabSize();
        int[] tokens = random.ints(FIRST, 0, vocabSize).toArray();
        double[] seconds = new double[TURNS + 1];
        int[] said = new int[TURNS * ANSWER];
        float[] logProbs = new float[TURNS * ANSWER];
        HeldPrefix held = null;
        for (int turn = 0; turn < TURNS; turn++) {
            int before = tokens.length;
            tokens = Arrays.copyOf(tokens, before + NEW + ANSWER);
            System.arraycopy(random.ints(NEW, 0, vocabSize).toArray(), 0, tokens, before, NEW);
            int known = before + NEW;
            long start = System.nanoTime();
            int at = 1;
            if (held == null) {
                session.reset(0, tokens[0]);
            } else {
                at = held.tokens() + 1;
                session.resume(0, held, held.tokens(), tokens[held.tokens()]);
            }
            for (; at < known; at += PIECE) {
                session.prefill(
                        weights,
                        List.of(new KnownTokens(0, Arrays.copyOfRange(tokens, at, Math.min(known, at + PIECE)))));
            }
            DecodeInput in = new DecodeInput(1, PER_CALL);
            for (int from = 0; from < ANSWER; from += PER_CALL) {
                in.clear();
                in.activate(0, PER_CALL, Sampling.of(1));
                for (int step = 0; step < PER_CALL; step++) {
                    in.sample(step, 0, (float) (random.nextInt(1 << 24) * 0x1p-24));
                }
                DecodeSteps done = session.advance(weights, in);
                for (int step = 0; step < PER_CALL; step++) {
                    tokens[known + from + step] = done.token(step, 0);
                    said[turn * ANSWER + from + step] = done.token(step, 0);
                    logProbs[turn * ANSWER + from + step] = done.logProb(step, 0);
                }
            }
            held = keeps ? session.take(0, tokens.length - 1) : null;
            seconds[turn] = (System.nanoTime() - start) / 1e9;
            seconds[TURNS] += seconds[turn];
        }
        return new Played(seconds, said, logProbs);
    }
}
