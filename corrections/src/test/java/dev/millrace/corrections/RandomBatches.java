package dev.millrace.corrections;

import java.util.Random;

/**
 * Seeded random ragged batches for naive twins: empty sequences, single tokens, all context, context inside, garbage
 * (NaN included) at context tokens.
 */
public final class RandomBatches {
    private final Random random;

    public RandomBatches(long seed) {
        this.random = new Random(seed);
    }

    /** Up to 12 sequences of up to 40 tokens, in up to 4 groups, of every awkward shape. */
    public TokenBatch next() {
        int sequences = 1 + random.nextInt(12);
        int[] offsets = new int[sequences + 1];
        int[] groups = new int[sequences];
        for (int s = 0; s < sequences; s++) {
            int length = switch (random.nextInt(5)) {
                case 0 -> 0;
                case 1 -> 1;
                default -> 1 + random.nextInt(40);
            };
            offsets[s + 1] = offsets[s] + length;
            groups[s] = random.nextInt(4);
        }
        byte[] mask = new byte[offsets[sequences]];
        for (int s = 0; s < sequences; s++) {
            double share = random.nextInt(4) == 0 ? 0.0 : random.nextInt(3) == 0 ? 1.0 : random.nextDouble();
            for (int t = offsets[s]; t < offsets[s + 1]; t++) {
                mask[t] = (byte) (random.nextDouble() < share ? 1 : 0);
            }
        }
        return new TokenBatch(offsets, mask, groups);
    }

    /** Log-probs of a plausible policy at trained tokens, garbage at context tokens. */
    public float[] logProbs(TokenBatch batch) {
        float[] logProbs = new float[batch.tokenCount()];
        for (int t = 0; t < logProbs.length; t++) {
            logProbs[t] = batch.isTrained(t) ? (float) -(0.01 - Math.log(1 - random.nextDouble())) : garbage();
        }
        return logProbs;
    }

    /** {@code logProbs} moved by normal noise of standard deviation {@code spread}, never above 0. */
    public float[] near(TokenBatch batch, float[] logProbs, double spread) {
        float[] moved = new float[logProbs.length];
        for (int t = 0; t < moved.length; t++) {
            moved[t] =
                    batch.isTrained(t) ? (float) Math.min(0, logProbs[t] + spread * random.nextGaussian()) : garbage();
        }
        return moved;
    }

    private float garbage() {
        return switch (random.nextInt(4)) {
            case 0 -> Float.NaN;
            case 1 -> Float.NEGATIVE_INFINITY;
            case 2 -> 1e30f;
            default -> 0f;
        };
    }
}
