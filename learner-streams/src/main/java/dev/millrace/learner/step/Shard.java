package dev.millrace.learner.step;

import dev.millrace.policy.session.SequenceBatch;

/**
 * Some sequences of a minibatch as a batch of their own, and the way between its packed positions and the minibatch's.
 */
final class Shard {
    private final SequenceBatch whole;
    private final int[] members;
    private final SequenceBatch sequences;
    private final float[] temperatures;

    /** @param members indices into {@code whole}, ascending */
    Shard(SequenceBatch whole, float[] temperatures, int[] members) {
        this.whole = whole;
        this.members = members;
        this.temperatures = new float[members.length];
        int[][] tokens = new int[members.length][];
        int[] firstScored = new int[members.length];
        for (int i = 0; i < members.length; i++) {
            int s = members[i];
            this.temperatures[i] = temperatures[s];
            firstScored[i] = whole.firstScored(s);
            tokens[i] = new int[whole.length(s)];
            for (int t = 0; t < tokens[i].length; t++) {
                tokens[i][t] = whole.token(s, t);
            }
        }
        this.sequences = new SequenceBatch(tokens, firstScored);
    }

    SequenceBatch sequences() {
        return sequences;
    }

    float[] temperatures() {
        return temperatures;
    }

    /** The minibatch's index of this shard's i-th sequence. */
    int member(int i) {
        return members[i];
    }

    /** This shard's values out of the minibatch's. */
    float[] pick(float[] packed) {
        float[] picked = new float[sequences.scoredCount()];
        for (int i = 0; i < members.length; i++) {
            System.arraycopy(packed, whole.offset(members[i]), picked, sequences.offset(i), length(i));
        }
        return picked;
    }

    /** Puts this shard's values where they belong in the minibatch's. */
    void put(float[] values, float[] packed) {
        for (int i = 0; i < members.length; i++) {
            System.arraycopy(values, sequences.offset(i), packed, whole.offset(members[i]), length(i));
        }
    }

    private int length(int i) {
        return sequences.offset(i + 1) - sequences.offset(i);
    }
}
