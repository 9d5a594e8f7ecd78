package dev.millrace.corrections.advantage;

import dev.millrace.corrections.TokenBatch;

/** Checks vectors with one value per sequence. */
final class SequenceRewards {
    private SequenceRewards() {}

    static void requireFinite(TokenBatch batch, String what, double[] values) {
        if (values.length != batch.sequenceCount()) {
            throw new IllegalArgumentException(what + ": one per sequence is needed: length=" + values.length
                    + ", sequences=" + batch.sequenceCount());
        }
        for (int s = 0; s < values.length; s++) {
            if (!Double.isFinite(values[s])) {
                throw new IllegalArgumentException(what + " must be finite: sequence=" + s + ", value=" + values[s]);
            }
        }
    }
}
