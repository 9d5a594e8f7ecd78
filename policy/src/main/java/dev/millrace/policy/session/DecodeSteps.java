package dev.millrace.policy.session;

import org.jspecify.annotations.Nullable;

/**
 * Result of one {@link DecodeSession} call. Reading a step that a slot did not take is refused. Immutable.
 */
public final class DecodeSteps {
    private final int slots;
    private final int[] steps;
    private final long[] tokens;
    private final float[] logProbs;
    private final float[] temperatureLogProbs;
    private final float[] entropies;
    private final @Nullable StepKept kept;
    private final @Nullable StepTop top;

    /**
     * All arrays [steps, slots].
     *
     * @param kept null if no slot recorded it
     * @param top  null if no slot recorded it
     */
    DecodeSteps(
            int[] steps,
            long[] tokens,
            float[] logProbs,
            float[] temperatureLogProbs,
            float[] entropies,
            @Nullable StepKept kept,
            @Nullable StepTop top) {
        this.slots = steps.length;
        this.steps = steps;
        this.tokens = tokens;
        this.logProbs = logProbs;
        this.temperatureLogProbs = temperatureLogProbs;
        this.entropies = entropies;
        this.kept = kept;
        this.top = top;
    }

    /** Number of leading slots that were computed; later ones were idle. */
    int slots() {
        return slots;
    }

    /** Steps this slot took; 0 if it was idle. */
    public int steps(int slot) {
        return slot < slots ? steps[slot] : 0;
    }

    public int token(int step, int slot) {
        return (int) tokens[index(step, slot)];
    }

    /**
     * Log-prob of the token under the sampled distribution: after temperature and truncation, renormalised. Of a
     * forced token that truncation leaves out it is minus infinity.
     */
    public float logProb(int step, int slot) {
        return logProbs[index(step, slot)];
    }

    /** Log-prob of the token after temperature only. */
    public float temperatureLogProb(int step, int slot) {
        return temperatureLogProbs[index(step, slot)];
    }

    /** Entropy, in nats, of the distribution after temperature only. */
    public float entropy(int step, int slot) {
        return entropies[index(step, slot)];
    }

    /** The tokens that the step sampled from, the likeliest first; empty if nothing was sampled or recorded. */
    public int[] kept(int step, int slot) {
        int index = index(step, slot);
        return kept == null ? new int[0] : kept.at(index);
    }

    /**
     * The top tokens of the compared distribution: the sampled one if kept tokens are recorded, otherwise the one after
     * temperature only.
     *
     * @param k as the slot's sampling asked for
     */
    public TopTokens top(int step, int slot, int k) {
        int index = index(step, slot);
        if (top == null || k > top.k()) {
            throw new IllegalArgumentException("this call recorded no " + k + " likeliest tokens");
        }
        return top.at(index, k);
    }

    private int index(int step, int slot) {
        if (step < 0 || step >= steps(slot)) {
            throw new IndexOutOfBoundsException(
                    "slot " + slot + " took " + steps(slot) + " steps, there is no step " + step);
        }
        return step * slots + slot;
    }
}
