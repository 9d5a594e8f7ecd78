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
import java.lang.management.ManagementFactory;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.SplittableRandom;
import org.jspecify.annotations.Nullable;

/**
 * Conversations side by side on one thread, each with something new to take in and an answer behind in every turn: taken in whole every time, and
 * gone on with from what was kept of the turn before. Every round takes each way once, in turns, so that what else runs on the machine meets
 * both alike. Answers are the same tokens by the same draws, unless log-probs differ by more than a draw's distance from its bound; how much
 * they differ is said.
 *
 * <p>Arguments: a {@link RandomLlama}, the rounds, and a {@link Precision}; then the five numbers of {@link Plan}. By default one
 * conversation of four turns behind 256 tokens; each turn adds 128 tokens and samples 64.
 */
public final class ConversationSpeed {
    private static final int PIECE = 256;
    private static final int PER_CALL = 4;

    private ConversationSpeed() {}

    /**
     * The conversations.
     *
     * @param sides  conversations at once
     * @param first  tokens before its first turn, such as a system text
     * @param added  tokens that each turn adds
     * @param answer tokens that are sampled in each turn
     */
    private record Plan(int sides, int turns, int first, int added, int answer) {
        static Plan of(String[] arguments) {
            return arguments.length < 8
                    ? new Plan(1, 4, 256, 128, 64)
                    : new Plan(
                            Integer.parseInt(arguments[3]),
                            Integer.parseInt(arguments[4]),
                            Integer.parseInt(arguments[5]),
                            Integer.parseInt(arguments[6]),
                            Integer.parseInt(arguments[7]));
        }

        int longest() {
            return first + turns * (added + answer);
        }
    }

    /** What a conversation took, and what was said. */
    private record Played(double[] seconds, int[] tokens, float[] logProbs) {}

    public static void main(String[] arguments) {
        int rounds = Integer.parseInt(arguments[1]);
        Precision precision = Precision.valueOf(arguments[2].toUpperCase(Locale.ROOT));
        Plan plan = Plan.of(arguments);
        DecoderShape shape = RandomLlama.shape(arguments[0], plan.longest());
        System.out.printf(
                Locale.ROOT,
                "%s, %d processors, load average %.1f, %s %s, %.1f M parameters, %s, %d conversations of %d turns, %d tokens at first, %d new ones and %d sampled a turn%n",
                System.getProperty("os.arch"),
                Runtime.getRuntime().availableProcessors(),
                ManagementFactory.getOperatingSystemMXBean().getSystemLoadAverage(),
                System.getProperty("java.vm.name"),
                Runtime.version(),
                shape.parameterCount() / 1e6,
                precision,
                plan.sides(),
                plan.turns(),
                plan.first(),
                plan.added(),
                plan.answer());
        Weights weights = Weights.random(shape, 1);
        PreparedWeights prepared = new PreparedWeights(precision);
        prepared.prepare(weights);
        try (DecodeSession session =
                new DecodeSession(Engine.cpu(), shape, plan.sides(), plan.longest(), PER_CALL, prepared)) {
            double[][] whole = new double[plan.turns() + 1][rounds];
            double[][] kept = new double[plan.turns() + 1][rounds];
            double furthest = 0;
            int other = 0;
            for (int round = -1; round < rounds; round++) {
                Played one = play(session, weights, plan, round, false);
                Played two = play(session, weights, plan, round, true);
                int same = Arrays.mismatch(one.tokens(), two.tokens());
                same = same < 0 ? one.tokens().length : same;
                other += same < one.tokens().length ? 1 : 0;
                for (int i = 0; i < same; i++) {
                    furthest = Math.max(furthest, Math.abs(one.logProbs()[i] - two.logProbs()[i]));
                }
                for (int turn = 0; round >= 0 && turn <= plan.turns(); turn++) {
                    whole[turn][round] = one.seconds()[turn];
                    kept[turn][round] = two.seconds()[turn];
                }
            }
            for (int turn = 0; turn <= plan.turns(); turn++) {
                report(turn < plan.turns() ? "turn " + (turn + 1) : "all turns", whole[turn], kept[turn]);
            }
            System.out.printf(
                    Locale.ROOT,
                    "log-probs differ by at most %.1e; of %d rounds %d went another way from some token on; kept: %.1f kB a token%n",
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

    private static Played play(DecodeSession session, Weights weights, Plan plan, int round, boolean keeps) {
        SplittableRandom random = new SplittableRandom(round);
        int vocabSize = weights.shape().vocabSize();
        int[][] tokens = new int[plan.sides()][];
        Arrays.setAll(tokens, side -> random.ints(plan.first(), 0, vocabSize).toArray());
        double[] seconds = new double[plan.turns() + 1];
        int[] said = new int[plan.turns() * plan.answer() * plan.sides()];
        float[] logProbs = new float[said.length];
        @Nullable HeldPrefix[] held = new HeldPrefix[plan.sides()];
        for (int turn = 0; turn < plan.turns(); turn++) {
            int before = tokens[0].length;
            int known = before + plan.added();
            for (int side = 0; side < plan.sides(); side++) {
                tokens[side] = Arrays.copyOf(tokens[side], known + plan.answer());
                System.arraycopy(
                        random.ints(plan.added(), 0, vocabSize).toArray(), 0, tokens[side], before, plan.added());
            }
            long start = System.nanoTime();
            takeIn(session, weights, tokens, known, held);
            int saidBefore = turn * plan.answer() * plan.sides();
            DecodeInput in = new DecodeInput(plan.sides(), PER_CALL);
            for (int from = 0; from < plan.answer(); from += PER_CALL) {
                in.clear();
                for (int side = 0; side < plan.sides(); side++) {
                    in.activate(side, PER_CALL, Sampling.of(1));
                    for (int step = 0; step < PER_CALL; step++) {
                        in.sample(step, side, (float) (random.nextInt(1 << 24) * 0x1p-24));
                    }
                }
                DecodeSteps done = session.advance(weights, in);
                for (int step = 0; step < PER_CALL; step++) {
                    for (int side = 0; side < plan.sides(); side++) {
                        int at = saidBefore + (from + step) * plan.sides() + side;
                        tokens[side][known + from + step] = done.token(step, side);
                        said[at] = done.token(step, side);
                        logProbs[at] = done.logProb(step, side);
                    }
                }
            }
            for (int side = 0; keeps && side < plan.sides(); side++) {
                held[side] = session.take(side, tokens[side].length - 1);
            }
            seconds[turn] = (System.nanoTime() - start) / 1e9;
            seconds[plan.turns()] += seconds[turn];
        }
        return new Played(seconds, said, logProbs);
    }

    /** Piece by piece, one conversation after the other. */
    private static void takeIn(
            DecodeSession session, Weights weights, int[][] tokens, int known, @Nullable HeldPrefix[] held) {
        for (int side = 0; side < tokens.length; side++) {
            HeldPrefix its = held[side];
            int at = 1;
            if (its == null) {
                session.reset(side, tokens[side][0]);
            } else {
                at = its.tokens() + 1;
                session.resume(side, its, its.tokens(), tokens[side][its.tokens()]);
            }
            for (; at < known; at += PIECE) {
                session.prefill(
                        weights,
                        List.of(new KnownTokens(
                                side, Arrays.copyOfRange(tokens[side], at, Math.min(known, at + PIECE)))));
            }
        }
    }
}
