package dev.millrace.corrections.objective;

/** SAPO's gate as a function of one ratio: {@code −A (4/τ) σ(τ (r − 1))}. */
record SoftGate(double tauPositive, double tauNegative) {

    /** Writes loss and d loss / d log ratio. */
    void apply(double ratio, double advantage, TokenTerm term) {
        double tau = advantage > 0 ? tauPositive : tauNegative;
        double open = 1 / (1 + Math.exp(-tau * (ratio - 1)));
        double closed = 1 - open; // 0 from about 37 / tau on, long before the ratio overflows
        term.loss = -advantage * open * 4 / tau;
        term.derivative = closed == 0 ? 0.0 : -advantage * 4 * open * closed * ratio;
    }
}
