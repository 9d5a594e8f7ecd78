package dev.millrace.policy.session;

import java.util.Arrays;

/**
 * Input of one {@link DecodeSession} call: per slot the number of steps, and per step a forced token or a uniform
 * number to sample with.
 *
 * <p>Made once and reused: {@link #clear}, then fill. An idle slot keeps its sequence unchanged. Not thread-safe.
 */
public final class DecodeInput {
    private static final int UNSET = -2;
    private static final int SAMPLE = -1;

    private final int slots;
    private final int maxSteps;
    private final int[] steps;
    private final Sampling[] samplings;
    private final int[] forced;
    private final float[] uniforms;

    /** @param maxSteps most steps in one call: the session's {@code tokensPerCall} */
    public DecodeInput(int slots, int maxSteps) {
        this.slots = slots;
        this.maxSteps = maxSteps;
        this.steps = new int[slots];
        this.samplings = new Sampling[slots];
        this.forced = new int[slots * maxSteps];
        this.uniforms = new float[slots * maxSteps];
        clear();
    }

    public void clear() {
        Arrays.fill(steps, 0);
        Arrays.fill(forced, UNSET);
    }

    /** Activates a slot for the first {@code steps} steps of the call; each must then be forced or sampled. */
    public void activate(int slot, int steps, Sampling sampling) {
        if (steps < 1 || steps > maxSteps) {
            throw new IllegalArgumentException("a slot takes at least 1 and at most " + maxSteps
                    + " steps in a call: steps=" + steps + " of slot " + slot);
        }
        this.steps[slot] = steps;
        this.samplings[slot] = sampling;
    }

    /** Forces the token of this step, from a prompt or an environment. */
    public void force(int step, int slot, int token) {
        if (token < 0) {
            throw new IllegalArgumentException(
                    "a forced token cannot be negative: token=" + token + " at step " + step + " of slot " + slot);
        }
        forced[index(step, slot)] = token;
    }

    /**
     * Samples the token of this step with a number in [0, 1); the same number gives the same token for the same
     * distribution.
     */
    public void sample(int step, int slot, float uniform) {
        if (!(uniform >= 0 && uniform < 1)) {
            throw new IllegalArgumentException("a uniform number must be at least 0 and below 1: uniform=" + uniform
                    + " at step " + step + " of slot " + slot);
        }
        forced[index(step, slot)] = SAMPLE;
        uniforms[index(step, slot)] = uniform;
    }

    int slots() {
        return slots;
    }

    int steps(int slot) {
        return steps[slot];
    }

    Sampling sampling(int slot) {
        return samplings[slot];
    }

    /** Steps of the busiest slot. */
    int longest() {
        return Arrays.stream(steps).max().orElse(0);
    }

    /** [steps, rows] of the first slots: the forced token or -1; an idle step is forced to token 0. */
    long[] forcedTokens(int count, int rows, int vocabSize) {
        long[] tokens = new long[count * rows];
        for (int step = 0; step < count; step++) {
            for (int slot = 0; slot < rows; slot++) {
                if (step < steps[slot]) {
                    int token = forced[index(step, slot)];
                    if (token == UNSET) {
                        throw new IllegalArgumentException("step " + step + " of slot " + slot
                                + " is neither forced nor sampled, of " + steps[slot] + " steps");
                    }
                    if (token >= vocabSize) {
                        throw new IllegalArgumentException("forced token " + token + " at step " + step + " of slot "
                                + slot + " is outside the vocabulary of " + vocabSize);
                    }
                    tokens[step * rows + slot] = token;
                }
            }
        }
        return tokens;
    }

    /** [steps, rows] of the first slots. */
    float[] uniforms(int count, int rows) {
        float[] some = new float[count * rows];
        for (int step = 0; step < count; step++) {
            System.arraycopy(uniforms, step * slots, some, step * rows, rows);
        }
        return some;
    }

    private int index(int step, int slot) {
        if (step < 0 || step >= maxSteps || slot < 0 || slot >= slots) {
            throw new IndexOutOfBoundsException(
                    "step " + step + " of slot " + slot + " is outside " + maxSteps + " steps and " + slots + " slots");
        }
        return step * slots + slot;
    }
}
