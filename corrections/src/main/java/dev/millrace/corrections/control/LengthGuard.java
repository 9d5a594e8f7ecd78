package dev.millrace.corrections.control;

import java.util.Optional;

/**
 * The factor on the learning rate that a batch's response length asks for:
 * {@code min(1, max(smallest_scale, tolerated · mean / length))}, {@code mean} being the running mean of earlier batches'
 * lengths, {@code mean ← decay · mean + (1 − decay) · length} afterwards. The first batch sets the mean.
 *
 * <p>Unit: optimiser step. A function of the batch and of what is remembered with the version. Immutable.
 */
public final class LengthGuard {
    static final String MEAN = "length_guard.mean_tokens";

    private final LengthGuardConfig config;

    public LengthGuard(LengthGuardConfig config) {
        this.config = config;
    }

    /**
     * What the guard did.
     *
     * @param scale   factor on the learning rate, in (0, 1]
     * @param seen    what it saw; empty when it is off
     * @param state   what is remembered afterwards
     */
    public record Outcome(double scale, Optional<Seen> seen, ControlState state) {}

    /**
     * What the guard saw.
     *
     * @param tokens     mean response length of the batch
     * @param meanBefore what was remembered of those before it
     */
    public record Seen(double tokens, double meanBefore) {}

    /** @param meanTokens mean response length of the batch, masked members included; above 0 */
    public Outcome see(double meanTokens, ControlState state) {
        if (!(config instanceof LengthGuardConfig.Proportional guard)) {
            return new Outcome(1, Optional.empty(), state);
        }
        if (!(meanTokens > 0 && meanTokens < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException("a mean response length must be above 0 and finite: " + meanTokens);
        }
        double before = state.get(MEAN).orElse(meanTokens);
        double scale = Math.min(1, Math.max(guard.smallestScale(), guard.tolerated() * before / meanTokens));
        double after = guard.decay() * before + (1 - guard.decay()) * meanTokens;
        return new Outcome(scale, Optional.of(new Seen(meanTokens, before)), state.with(MEAN, after));
    }
}
