package dev.millrace.corrections.objective;

/**
 * The clipped surrogate of PPO as a function of one ratio: {@code max(−A r, −A clip(r))}, bounded by {@code −A c} where
 * the advantage is negative.
 *
 * @param low the band in which a ratio moves freely begins at {@code 1 - low}
 * @param high it ends at {@code 1 + high}; larger than {@code low} is "clip higher" (DAPO)
 * @param dualBound largest ratio that counts against a token; infinite for none
 */
record ClippedSurrogate(double low, double high, double dualBound) {
    ClippedSurrogate(double low, double high) {
        this(low, high, Double.POSITIVE_INFINITY);
    }

    double clip(double ratio) {
        return Math.max(1 - low, Math.min(1 + high, ratio));
    }

    /** Writes loss, the derivative d loss / d log ratio (ratio times d loss / d ratio), and what was clipped. */
    void apply(double ratio, double advantage, TokenTerm term) {
        double free = -advantage * ratio;
        double clippedLoss = -advantage * clip(ratio);
        term.clipped = clippedLoss > free;
        term.loss = Math.max(free, clippedLoss);
        // where the two agree because the ratio is inside the band, the derivative is that of the free branch
        term.derivative = term.clipped ? 0.0 : free;
        if (advantage < 0 && term.loss > -advantage * dualBound) {
            term.loss = -advantage * dualBound;
            term.derivative = 0.0;
            term.lowerClipped = true;
        }
    }
}
