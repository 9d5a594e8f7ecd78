package dev.millrace.corrections.objective;

/**
 * The clipped surrogate of PPO as a function of one ratio: {@code max(−A r, −A clip(r))}, bounded by {@code −A c} where
 * the advantage is negative.
 */
final class ClippedSurrogate {
    private final ClipRange range;
    private final double dualBound;

    /** @param dualBound largest ratio that counts against a token; infinite for none */
    ClippedSurrogate(ClipRange range, double dualBound) {
        if (!(dualBound > 1.0)) {
            throw new IllegalArgumentException("the dual clip bound must be above 1: " + dualBound);
        }
        this.range = range;
        this.dualBound = dualBound;
    }

    /** Writes loss, the derivative d loss / d log ratio (ratio times d loss / d ratio), and what was clipped. */
    void apply(double ratio, double advantage, TokenTerm term) {
        double free = -advantage * ratio;
        double clippedLoss = -advantage * range.clip(ratio);
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
