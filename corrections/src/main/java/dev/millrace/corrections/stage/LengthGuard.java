package dev.millrace.corrections.stage;

import java.util.Optional;
import java.util.OptionalDouble;

/**
 * The factor on the learning rate that a batch's response length asks for: {@code scale} if the batch's mean length is more
 * than {@code growth} times what it was {@code steps} steps ago, else 1.
 *
 * <p>Unit: optimizer step, that is, a batch that was trained on. A batch without a trained token is neither compared
 * nor remembered. The lengths of the last {@code steps} steps are remembered one by one. Until enough lengths are
 * remembered the guard compares nothing and substitutes no length. The decision is a function of the batch and of the
 * state stored with the version, so a restarted learner and a replay decide the same. Immutable.
 */
public final class LengthGuard {
    /** How many lengths are remembered, until there are enough; then it stays. */
    static final String REMEMBERED = "length_guard.remembered";
    /** Where among them the oldest is, once there are enough. */
    static final String OLDEST = "length_guard.oldest";
    /** How many are enough; what was remembered for another number is forgotten. */
    static final String STEPS = "length_guard.steps";

    private static final String LENGTH = "length_guard.tokens.";

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
     * @param tokens       mean response length of the batch
     * @param tokensBefore mean response length {@code steps} steps ago; empty until enough lengths are remembered
     * @param remembered   how many steps before this one are remembered
     */
    public record Seen(double tokens, OptionalDouble tokensBefore, int remembered) {}

    /** @param meanTokens mean response length of the batch, masked members included; above 0 */
    public Outcome see(double meanTokens, ControlState state) {
        if (!(config instanceof LengthGuardConfig.Surge guard)) {
            return new Outcome(1, Optional.empty(), state);
        }
        if (!(meanTokens > 0 && meanTokens < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException("a mean response length must be above 0 and finite: " + meanTokens);
        }
        ControlState before = state.get(STEPS).orElse(0) == guard.steps() ? state : forget(state, guard.steps());
        int remembered = (int) before.get(REMEMBERED).orElse(0);
        int oldest = (int) before.get(OLDEST).orElse(0);
        if (remembered < guard.steps()) {
            return new Outcome(
                    1,
                    Optional.of(new Seen(meanTokens, OptionalDouble.empty(), remembered)),
                    before.with(LENGTH + remembered, meanTokens).with(REMEMBERED, remembered + 1));
        }
        double then = before.get(LENGTH + oldest).orElseThrow();
        return new Outcome(
                meanTokens > guard.growth() * then ? guard.scale() : 1,
                Optional.of(new Seen(meanTokens, OptionalDouble.of(then), remembered)),
                before.with(LENGTH + oldest, meanTokens).with(OLDEST, (oldest + 1) % guard.steps()));
    }

    private static ControlState forget(ControlState state, int steps) {
        return state.without("length_guard.").with(STEPS, steps);
    }
}
