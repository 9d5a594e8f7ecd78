package dev.millrace.corrections.length;

import dev.millrace.corrections.TokenBatch;

/** What every length penalty refuses. */
final class LengthPenaltyInput {
    private LengthPenaltyInput() {}

    static void requireVerdicts(TokenBatch batch, boolean[] correct) {
        if (correct.length != batch.sequenceCount()) {
            throw new IllegalArgumentException("one verdict per sequence is needed: length=" + correct.length
                    + ", sequences=" + batch.sequenceCount());
        }
    }

    static void requireFinite(String name, double bound) {
        if (!Double.isFinite(bound)) {
            throw new IllegalArgumentException(name + " must be finite: " + bound);
        }
    }

    /** Refuses a price that is negative or not finite. */
    static double requirePrice(String name, double price) {
        if (!(price >= 0 && price < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException(name + " must be finite and not negative: " + price);
        }
        return price;
    }
}
