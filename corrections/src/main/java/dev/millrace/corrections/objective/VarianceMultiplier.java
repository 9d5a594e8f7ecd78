package dev.millrace.corrections.objective;

/**
 * The multiplier of the ratio variance, raised while the variance is above its budget and lowered below:
 * {@code lambda' = clamp(lambda + rate (variance - budget), smallest, largest)}.
 *
 * <p>Dual ascent on the constraint {@code variance <= budget}. Unit: optimizer step. Immutable: {@link #after}
 * returns the next state.
 *
 * @param multiplier lambda now
 * @param budget largest variance wanted, positive
 * @param rate step of the ascent, positive
 * @param smallest lower limit, positive, so that some penalty always remains
 * @param largest largest multiplier
 */
public record VarianceMultiplier(double multiplier, double budget, double rate, double smallest, double largest) {
    public VarianceMultiplier {
        if (!(budget > 0.0 && rate > 0.0 && budget < Double.POSITIVE_INFINITY && rate < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException(
                    "budget and rate must be positive and finite: budget=" + budget + ", rate=" + rate);
        }
        if (!(smallest > 0.0
                && smallest <= multiplier
                && multiplier <= largest
                && largest < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException("0 < smallest <= multiplier <= largest < infinity must hold: smallest="
                    + smallest + ", multiplier=" + multiplier + ", largest=" + largest);
        }
    }

    /**
     * The state after a step on which {@code variance} was measured.
     *
     * @throws IllegalArgumentException if it is negative or not finite
     */
    public VarianceMultiplier after(double variance) {
        if (!(variance >= 0.0 && variance < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException("variance must be finite and not negative: variance=" + variance);
        }
        double next = Math.max(smallest, Math.min(largest, multiplier + rate * (variance - budget)));
        return new VarianceMultiplier(next, budget, rate, smallest, largest);
    }

    /** The penalty at this multiplier. */
    public RatioVariancePenalty penalty() {
        return new RatioVariancePenalty(multiplier);
    }
}
