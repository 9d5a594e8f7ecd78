package dev.millrace.corrections;

import java.util.Arrays;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * The layout of a ragged batch: sequence {@code s} covers the packed tokens {@code [start(s), end(s))}, and the mask
 * marks the trained ones.
 *
 * <p>Values per token (log-probs, weights, advantages) are passed separately as plain arrays with one element per
 * packed token, so that one layout serves every policy's log-probs. A sequence may be empty or hold no trained token.
 * Context tokens (prompt, tool output, padding) may stand anywhere in it. Corrections never read values at context
 * tokens, so those may be anything, NaN included.
 *
 * <p>{@code groups} says which sequences answer the same prompt: one index per sequence, {@code 0 .. groupCount()-1},
 * in any order. Without it every sequence is a group of its own.
 *
 * <p>Immutable and thread-safe. The constructor copies its arguments and validates them once, in O(tokens), so that no
 * method of the library has to.
 */
public final class TokenBatch {
    private final int[] offsets;
    private final byte[] mask;
    private final int[] trainedPerSequence;
    private final int @Nullable [] groups;
    private final int groupCount;
    private final int trainedTokens;

    /**
     * A batch without groups.
     *
     * @param offsets {@code sequences + 1} positions, the first 0, non-decreasing, the last the number of tokens
     * @param mask one per packed token: 1 = trained, 0 = context
     * @throws IllegalArgumentException naming the first sequence or token that breaks a rule
     */
    public TokenBatch(int[] offsets, byte[] mask) {
        this(offsets, mask, null);
    }

    /**
     * A batch whose sequences belong to groups.
     *
     * @param offsets {@code sequences + 1} positions, the first 0, non-decreasing, the last the number of tokens
     * @param mask one per packed token: 1 = trained, 0 = context
     * @param groups one group index per sequence, not negative; or null, and every sequence is its own group
     * @throws IllegalArgumentException naming the first sequence or token that breaks a rule
     */
    public TokenBatch(int[] offsets, byte[] mask, int @Nullable [] groups) {
        this(
                copyOfChecked(offsets, mask.length),
                mask.clone(),
                groups == null ? null : groups.clone(),
                offsets.length - 1);
    }

    private TokenBatch(int[] offsets, byte[] mask, int @Nullable [] groups, int sequences) {
        this.offsets = offsets;
        this.mask = mask;
        this.groups = groups;
        this.trainedPerSequence = countTrained(offsets, mask);
        this.trainedTokens = Arrays.stream(trainedPerSequence).sum();
        this.groupCount = countGroups(groups, sequences);
    }

    /** Returns how many sequences, the empty ones included. */
    public int sequenceCount() {
        return offsets.length - 1;
    }

    /** Returns how many packed tokens, context included. */
    public int tokenCount() {
        return mask.length;
    }

    /** Packed position of the first token of {@code sequence}. */
    public int start(int sequence) {
        return offsets[sequence];
    }

    /** Packed position after the last token of {@code sequence}. */
    public int end(int sequence) {
        return offsets[sequence + 1];
    }

    public int length(int sequence) {
        return offsets[sequence + 1] - offsets[sequence];
    }

    public boolean isTrained(int token) {
        return mask[token] != 0;
    }

    /** 1 if the packed token {@code token} is trained, 0 if it is context: {@link #isTrained} to calculate with. */
    public int trained(int token) {
        return mask[token];
    }

    /** Trained tokens of {@code sequence}; O(1). */
    public int trainedTokens(int sequence) {
        return trainedPerSequence[sequence];
    }

    /** Trained tokens of the whole batch; O(1). */
    public int trainedTokens() {
        return trainedTokens;
    }

    /** The group of {@code sequence}; the sequence's own index where the batch was made without groups. */
    public int group(int sequence) {
        if (groups == null) {
            Objects.checkIndex(sequence, sequenceCount());
            return sequence;
        }
        return groups[sequence];
    }

    /** One more than the largest group index; groups in between may be empty. */
    public int groupCount() {
        return groupCount;
    }

    /** The sequence that holds the packed token {@code token}; O(log sequences). */
    public int sequenceOf(int token) {
        Objects.checkIndex(token, tokenCount());
        int found = Arrays.binarySearch(offsets, token);
        int s = found >= 0 ? found : -found - 2;
        while (offsets[s + 1] <= token) { // empty sequences share their start with the one that holds the token
            s++;
        }
        return s;
    }

    /** A copy of the mask, one byte per packed token. */
    public byte[] mask() {
        return mask.clone();
    }

    /** A copy of the offsets. */
    public int[] offsets() {
        return offsets.clone();
    }

    /** Copies the mask of the packed tokens {@code [from, from + length)} to {@code into[at ..]}; no allocation. */
    public void copyMask(int from, byte[] into, int at, int length) {
        System.arraycopy(mask, from, into, at, length);
    }

    /**
     * The same sequences and groups under another mask, for instance the one a rejection left.
     *
     * @param newMask one per packed token: 1 = trained, 0 = context
     * @throws IllegalArgumentException if the length differs or a value is neither 0 nor 1
     */
    public TokenBatch withMask(byte[] newMask) {
        requireLength("mask", newMask.length);
        return new TokenBatch(offsets, newMask.clone(), groups, sequenceCount());
    }

    /**
     * Refuses a vector without exactly one element per packed token.
     *
     * @param vector the caller's name, for messages
     * @throws IllegalArgumentException naming both lengths
     */
    public void requireLength(String vector, int length) {
        if (length != tokenCount()) {
            throw new IllegalArgumentException(
                    vector + ": one element per token is needed: length=" + length + ", tokens=" + tokenCount());
        }
    }

    /**
     * Refuses a vector that has the wrong length or is not finite at a trained token. Context tokens are not checked.
     *
     * @param vector the caller's name, for messages
     * @throws IllegalArgumentException if the length is wrong
     * @throws NonFiniteLogProbException naming the first offending sequence and token
     */
    public void requireFinite(String vector, float[] values) {
        requireLength(vector, values.length);
        for (int s = 0; s < sequenceCount(); s++) {
            for (int t = offsets[s]; t < offsets[s + 1]; t++) {
                if (mask[t] != 0 && !Float.isFinite(values[t])) {
                    throw new NonFiniteLogProbException(vector, s, t - offsets[s], values[t]);
                }
            }
        }
    }

    /** As {@link #requireFinite(String, float[])}, for doubles. */
    public void requireFinite(String vector, double[] values) {
        requireLength(vector, values.length);
        for (int s = 0; s < sequenceCount(); s++) {
            for (int t = offsets[s]; t < offsets[s + 1]; t++) {
                if (mask[t] != 0 && !Double.isFinite(values[t])) {
                    throw new NonFiniteLogProbException(vector, s, t - offsets[s], values[t]);
                }
            }
        }
    }

    /**
     * Refuses a vector without exactly one finite element per sequence.
     *
     * @param vector the caller's name, for messages
     * @throws IllegalArgumentException naming both lengths, or the first offending sequence
     */
    public void requireFinitePerSequence(String vector, double[] values) {
        if (values.length != sequenceCount()) {
            throw new IllegalArgumentException(vector + ": one per sequence is needed: length=" + values.length
                    + ", sequences=" + sequenceCount());
        }
        for (int s = 0; s < values.length; s++) {
            if (!Double.isFinite(values[s])) {
                throw new IllegalArgumentException(vector + " must be finite: sequence=" + s + ", value=" + values[s]);
            }
        }
    }

    private static int[] copyOfChecked(int[] offsets, int tokens) {
        if (offsets.length == 0) {
            throw new IllegalArgumentException("offsets need sequences + 1 elements, the first of them 0: length=0");
        }
        if (offsets[0] != 0) {
            throw new IllegalArgumentException("offsets must start at 0: offsets[0]=" + offsets[0]);
        }
        for (int s = 1; s < offsets.length; s++) {
            if (offsets[s] < offsets[s - 1]) {
                throw new IllegalArgumentException("offsets must not decrease: sequence=" + (s - 1) + ", start="
                        + offsets[s - 1] + ", end=" + offsets[s]);
            }
        }
        if (offsets[offsets.length - 1] != tokens) {
            throw new IllegalArgumentException("offsets must end at the number of tokens: last offset="
                    + offsets[offsets.length - 1] + ", tokens in the mask=" + tokens);
        }
        return offsets.clone();
    }

    private static int[] countTrained(int[] offsets, byte[] mask) {
        int[] counts = new int[offsets.length - 1];
        for (int s = 0; s < counts.length; s++) {
            int trained = 0;
            int strayBits = 0;
            for (int t = offsets[s]; t < offsets[s + 1]; t++) {
                trained += mask[t];
                strayBits |= mask[t] & ~1;
            }
            if (strayBits != 0) {
                throw refusedMask(offsets, mask, s);
            }
            counts[s] = trained;
        }
        return counts;
    }

    private static IllegalArgumentException refusedMask(int[] offsets, byte[] mask, int sequence) {
        int t = offsets[sequence];
        while ((mask[t] & ~1) == 0) {
            t++;
        }
        return new IllegalArgumentException("mask must be 1 (trained) or 0 (context): sequence=" + sequence + ", token="
                + (t - offsets[sequence]) + ", value=" + mask[t]);
    }

    private static int countGroups(int @Nullable [] groups, int sequences) {
        if (groups == null) {
            return sequences;
        }
        if (groups.length != sequences) {
            throw new IllegalArgumentException(
                    "groups need one index per sequence: length=" + groups.length + ", sequences=" + sequences);
        }
        int count = 0;
        for (int s = 0; s < sequences; s++) {
            if (groups[s] < 0) {
                throw new IllegalArgumentException(
                        "group index must not be negative: sequence=" + s + ", group=" + groups[s]);
            }
            count = Math.max(count, groups[s] + 1);
        }
        return count;
    }
}
