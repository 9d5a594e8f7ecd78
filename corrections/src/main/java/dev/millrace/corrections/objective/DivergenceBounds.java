package dev.millrace.corrections.objective;

/** What the two trust regions of DPPO share: their bounds' checks, and the masked gradient they end in. */
final class DivergenceBounds {
    private DivergenceBounds() {}

    static void require(double low, double high, double truncation) {
        if (!(low >= 0 && low < Double.POSITIVE_INFINITY) || !(high >= 0 && high < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException(
                    "divergence bounds must be finite and not negative: low=" + low + ", high=" + high);
        }
        if (!(truncation > 0)) {
            throw new IllegalArgumentException("truncation must be positive: " + truncation);
        }
    }

    static void maskedPolicyGradient(
            double current, double proximal, double advantage, boolean inside, double truncation, TokenTerm term) {
        term.logRatio = BoundedLogRatio.of(current, proximal);
        double ratio = Math.exp(term.logRatio);
        double weight = inside ? Math.min(ratio, truncation) : 0.0;
        term.loss = -advantage * weight * current;
        term.derivative = -advantage * weight;
        term.clipped = !inside;
        term.lowerClipped = inside && ratio > truncation;
    }
}
