package dev.millrace.corrections.kl;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.objective.GlobalBatch;
import dev.millrace.corrections.objective.LossAggregation;
import java.util.Arrays;
import java.util.Random;
import java.util.function.DoubleBinaryOperator;
import java.util.stream.IntStream;

/**
 * Three policies over a small vocabulary, so that expectations are sums and nothing is left to sampling: the current
 * one is a softmax of logits, which gradients are taken by.
 */
record Vocabulary(double[] logits, double[] reference, double[] behavior) {
    private static final int SIZE = 5;

    static Vocabulary random(long seed) {
        Random random = new Random(seed);
        double[] logits = random.doubles(SIZE).map(x -> 2 * x).toArray();
        double[] p = random.doubles(SIZE).map(x -> 2 * x).toArray();
        double[] mu = random.doubles(SIZE).map(x -> 2 * x).toArray();
        return new Vocabulary(logits, softmax(p), softmax(mu));
    }

    private static double[] softmax(double[] logits) {
        double sum = Arrays.stream(logits).map(Math::exp).sum();
        return Arrays.stream(logits).map(x -> Math.exp(x) / sum).toArray();
    }

    double[] current() {
        return softmax(logits);
    }

    double[] sampling(KlSampling sampling) {
        return switch (sampling) {
            case CURRENT -> current();
            case BEHAVIOR -> behavior;
            case REFERENCE -> reference;
        };
    }

    /** Every token of the vocabulary as a batch of one trained token each. */
    KlResult evaluate(KlPlan plan) {
        byte[] mask = new byte[SIZE];
        Arrays.fill(mask, (byte) 1);
        TokenBatch batch = new TokenBatch(IntStream.rangeClosed(0, SIZE).toArray(), mask);
        return plan.evaluate(
                new LossAggregation.TokenSum(),
                batch,
                logs(current()),
                logs(reference),
                logs(behavior),
                GlobalBatch.WHOLE);
    }

    double expectedValue(KlPlan plan) {
        double[] probabilities = sampling(plan.sampling());
        float[] values = evaluate(plan).perToken();
        return IntStream.range(0, SIZE)
                .mapToDouble(y -> probabilities[y] * values[y])
                .sum();
    }

    /** Expectation of derivative times score: what a loss term's gradient is on average. */
    double[] expectedGradient(KlPlan plan) {
        return scored(plan.sampling(), evaluate(plan).gradient());
    }

    /** Expectation of coefficient times score, {@code E[c_y ∇ log q(y)]}. */
    double[] scored(KlSampling sampling, float[] coefficients) {
        double[] q = current();
        double[] probabilities = sampling(sampling);
        double[] gradient = new double[SIZE];
        for (int y = 0; y < SIZE; y++) {
            for (int i = 0; i < SIZE; i++) {
                gradient[i] += probabilities[y] * coefficients[y] * ((i == y ? 1 : 0) - q[i]);
            }
        }
        return gradient;
    }

    /** {@code Σ_y f(q_y, p_y)}. */
    double sum(DoubleBinaryOperator f) {
        double[] q = current();
        return IntStream.range(0, SIZE)
                .mapToDouble(y -> f.applyAsDouble(q[y], reference[y]))
                .sum();
    }

    /** Derivative of {@code Σ_y f(q_y, p_y)} by the logits. */
    double[] gradient(DoubleBinaryOperator f) {
        double step = 1e-6;
        double[] gradient = new double[SIZE];
        for (int i = 0; i < SIZE; i++) {
            gradient[i] = (moved(i, step).sum(f) - moved(i, -step).sum(f)) / (2 * step);
        }
        return gradient;
    }

    private Vocabulary moved(int i, double step) {
        double[] moved = logits.clone();
        moved[i] += step;
        return new Vocabulary(moved, reference, behavior);
    }

    private static float[] logs(double[] probabilities) {
        float[] logs = new float[probabilities.length];
        for (int y = 0; y < logs.length; y++) {
            logs[y] = (float) Math.log(probabilities[y]);
        }
        return logs;
    }
}
