package dev.millrace.policy.session;

/**
 * The tokens kept by top-k and top-p at each scored token of one sequence. Log-probs, entropies and gradients are then
 * those of the softmax over these tokens, so that policies are compared over the available actions.
 *
 * <p>Ragged: {@code counts[t]} ids for the t-th scored token, row after row in {@code ids}. A count of 0 marks a token
 * that was not sampled, such as an environment's: it has log-prob 0. The arrays are not copied and must not change.
 */
public final class SampledSupport {
    private final int[] counts;
    private final int[] ids;
    private final int[] starts;
    private final int widest;

    /**
     * @param counts one per scored token of the sequence, at least 0
     * @param ids    as many as the sum of the counts; distinct within a row and including the scored token, which a
     * session checks
     */
    public SampledSupport(int[] counts, int[] ids) {
        this.counts = counts;
        this.ids = ids;
        this.starts = new int[counts.length + 1];
        int most = 1;
        for (int t = 0; t < counts.length; t++) {
            if (counts[t] < 0) {
                throw new IllegalArgumentException(
                        "a count of kept tokens must be at least 0: " + counts[t] + " at scored token " + t);
            }
            starts[t + 1] = Math.addExact(starts[t], counts[t]);
            most = Math.max(most, counts[t]);
        }
        if (starts[counts.length] != ids.length) {
            throw new IllegalArgumentException("the counts of kept tokens add up to " + starts[counts.length]
                    + ", and there are " + ids.length + " ids");
        }
        this.widest = most;
    }

    int tokens() {
        return counts.length;
    }

    /** Kept tokens of the row with most, at least 1. */
    int widest() {
        return widest;
    }

    int count(int token) {
        return counts[token];
    }

    /** The i-th kept token at a scored token. */
    int id(int token, int i) {
        return ids[starts[token] + i];
    }

    /** Index of a token among the kept ones; -1 if it was not kept. */
    int place(int token, int id) {
        for (int i = starts[token]; i < starts[token + 1]; i++) {
            if (ids[i] == id) {
                return i - starts[token];
            }
        }
        return -1;
    }

    /** Refuses ids outside of the vocabulary, and a scored token that was not kept. */
    void requireRow(int token, int scored, int vocabSize, int sequence) {
        for (int i = 0; i < counts[token]; i++) {
            int id = id(token, i);
            if (id < 0 || id >= vocabSize) {
                throw new IllegalArgumentException("kept token " + id + " at scored token " + token + " of sequence "
                        + sequence + " is outside the vocabulary of " + vocabSize);
            }
        }
        if (counts[token] > 0 && place(token, scored) < 0) {
            throw new IllegalArgumentException("token " + scored + " at scored token " + token + " of sequence "
                    + sequence + " is not among the " + counts[token] + " that were kept to be drawn from");
        }
    }
}
