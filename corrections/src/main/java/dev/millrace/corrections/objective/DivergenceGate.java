package dev.millrace.corrections.objective;

/** What the two trust regions of DPPO share: the masked gradient they end in. */
final class DivergenceGate {
    private DivergenceGate() {}

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
