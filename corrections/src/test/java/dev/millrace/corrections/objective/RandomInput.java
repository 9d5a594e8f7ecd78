package dev.millrace.corrections.objective;

import dev.millrace.corrections.RandomBatches;
import dev.millrace.corrections.TokenBatch;
import java.util.Random;

/**
 * A seeded random ragged batch with every vector an objective may want, NaN at context tokens. Log-probs lie on a grid
 * of 2^-12, so that the step of a finite difference is exact in float.
 */
record RandomInput(
        TokenBatch batch, float[] current, float[] proximal, float[] behavior, float[] advantages, float[] weights) {
    /** One step of the grid. */
    static final float STEP = 0x1p-12f;

    /** @param spread standard deviation of current minus proximal */
    static RandomInput of(long seed, double spread) {
        Random random = new Random(seed);
        RandomBatches batches = new RandomBatches(seed);
        TokenBatch batch = batches.next();
        while (batch.trainedTokens() < 4) {
            batch = batches.next();
        }
        int tokens = batch.tokenCount();
        RandomInput in = new RandomInput(
                batch, new float[tokens], new float[tokens], new float[tokens], new float[tokens], new float[tokens]);
        for (int t = 0; t < tokens; t++) {
            boolean trained = batch.isTrained(t);
            double p = -0.1 - 2.5 * random.nextDouble();
            in.proximal[t] = trained ? onGrid(p) : Float.NaN;
            in.current[t] = trained ? onGrid(Math.min(-0.01, p + spread * random.nextGaussian())) : Float.NaN;
            in.behavior[t] = trained ? onGrid(Math.min(-0.01, p + 0.3 * random.nextGaussian())) : Float.NaN;
            in.advantages[t] = trained ? (float) random.nextGaussian() : Float.NaN;
            in.weights[t] = trained ? (float) (2 * random.nextDouble()) : Float.NaN;
        }
        return in;
    }

    private static float onGrid(double value) {
        return (float) (Math.rint(value / STEP) * STEP);
    }

    ObjectiveInput input() {
        return ObjectiveInput.of(batch, current, advantages)
                .withProximal(proximal)
                .withBehavior(behavior)
                .withWeights(weights);
    }

    /** The same with the trained token {@code token} moved by {@code steps} steps. */
    RandomInput moved(int token, int steps) {
        float[] moved = current.clone();
        moved[token] += steps * STEP;
        return new RandomInput(batch, moved, proximal, behavior, advantages, weights);
    }

    /** The same with one advantage per sequence. */
    RandomInput withSequenceAdvantages() {
        float[] constant = new float[advantages.length];
        for (int s = 0; s < batch.sequenceCount(); s++) {
            for (int t = batch.start(s); t < batch.end(s); t++) {
                constant[t] = batch.isTrained(t) ? (s % 2 == 0 ? 1 : -1) * (0.5f + s / 8f) : Float.NaN;
            }
        }
        return new RandomInput(batch, current, proximal, behavior, constant, weights);
    }

    /** The same sequences in reverse order. */
    RandomInput reversed() {
        int n = batch.sequenceCount();
        int[] offsets = new int[n + 1];
        byte[] mask = new byte[batch.tokenCount()];
        int[] groups = new int[n];
        float[][] from = {current, proximal, behavior, advantages, weights};
        float[][] to = new float[from.length][batch.tokenCount()];
        for (int s = 0; s < n; s++) {
            int old = n - 1 - s;
            int length = batch.length(old);
            offsets[s + 1] = offsets[s] + length;
            groups[s] = batch.group(old);
            batch.copyMask(batch.start(old), mask, offsets[s], length);
            for (int v = 0; v < from.length; v++) {
                System.arraycopy(from[v], batch.start(old), to[v], offsets[s], length);
            }
        }
        return new RandomInput(new TokenBatch(offsets, mask, groups), to[0], to[1], to[2], to[3], to[4]);
    }
}
