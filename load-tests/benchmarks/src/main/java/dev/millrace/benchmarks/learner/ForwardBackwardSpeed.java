package dev.millrace.benchmarks.learner;

import dev.millrace.policy.session.Engine;
import dev.millrace.policy.session.GradientSession;
import dev.millrace.policy.session.SequenceBatch;
import dev.millrace.policy.weights.Gradients;
import dev.millrace.policy.weights.Weights;
import java.util.Arrays;
import java.util.Locale;
import java.util.SplittableRandom;

/**
 * Times forward and backward pass alone, of the batches that {@code policy/src/test/python/torch_speed.py} gives to PyTorch:
 * the gradient by every weight of the sum of the log-probs of all response tokens, in one micro-batch on one thread.
 */
final class ForwardBackwardSpeed {
    private static final int WARM_UP = 3;
    private static final int ROUNDS = 21;

    private ForwardBackwardSpeed() {}

    static void measure(StepInput input) {
        SplittableRandom random = new SplittableRandom(1);
        int[][] tokens = new int[input.sequences()][];
        int[] firstScored = new int[input.sequences()];
        for (int s = 0; s < tokens.length; s++) {
            tokens[s] = random.ints(
                            input.prompt() + input.response(), 0, input.shape().vocabSize())
                    .toArray();
            firstScored[s] = input.prompt();
        }
        SequenceBatch batch = new SequenceBatch(tokens, firstScored);
        float[] ones = new float[batch.scoredCount()];
        Arrays.fill(ones, 1f);
        float[] temperatures = new float[tokens.length];
        Arrays.fill(temperatures, 1f);
        Weights weights = Weights.random(input.shape(), 2);
        Gradients gradients = new Gradients(input.shape());
        double[] seconds = new double[ROUNDS];
        try (GradientSession session = new GradientSession(Engine.cpu(), input.shape(), 8192)) {
            for (int round = -WARM_UP; round < ROUNDS; round++) {
                gradients.zero();
                long start = System.nanoTime();
                session.accumulate(weights, batch, temperatures, ones, new float[ones.length], gradients);
                if (round >= 0) {
                    seconds[round] = (System.nanoTime() - start) / 1e9;
                }
            }
        }
        Arrays.sort(seconds);
        System.out.printf(
                Locale.ROOT,
                "%s, 1 thread: forward and backward %.1f ms median of %d, %.1f least, %.1f most; %.0f tokens/s%n",
                input.name(),
                seconds[ROUNDS / 2] * 1e3,
                ROUNDS,
                seconds[0] * 1e3,
                seconds[ROUNDS - 1] * 1e3,
                input.tokens() / seconds[ROUNDS / 2]);
    }
}
