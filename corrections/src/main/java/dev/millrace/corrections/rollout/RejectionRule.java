package dev.millrace.corrections.rollout;

import java.util.Locale;

/**
 * One statistic and the closed interval it must lie in; tokens (or sequences) outside are rejected.
 *
 * <p>Bounds are inclusive, so that identical policies, with every statistic exactly 0, are never rejected by a rule
 * that allows 0.
 *
 * @param aggregation from tokens to what is rejected as one
 * @param min smallest statistic that is kept; only looked at if the rule is two-sided; may be negative infinity
 * @param max largest statistic that is kept
 */
public record RejectionRule(RejectionDivergence divergence, RejectionAggregation aggregation, double min, double max) {

    public RejectionRule {
        if (Double.isNaN(min) || Double.isNaN(max)) {
            throw new IllegalArgumentException(
                    divergence + ", " + aggregation + ": bounds must not be NaN: min=" + min + ", max=" + max);
        }
    }

    /** The statistic of a mode within bounds that the caller answers for. */
    public static RejectionRule within(RejectionMode mode, double min, double max) {
        return new RejectionRule(mode.divergence(), mode.aggregation(), min, max);
    }

    /**
     * A one-sided rule (k2, k3): keep what is at most {@code upper}.
     *
     * @param upper positive and finite, in nats
     */
    public static RejectionRule atMost(RejectionMode mode, double upper) {
        if (mode.isTwoSided()) {
            throw new IllegalArgumentException(mode.label() + " has a sign and needs a lower and an upper ratio bound");
        }
        if (!(upper > 0 && upper < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException(
                    "rollout_rs_threshold for " + mode.label() + " must be positive and finite: " + upper);
        }
        return within(mode, 0.0, upper);
    }

    /**
     * A two-sided rule (k1): keep {@code log(lower) <= k1 <= log(upper)}.
     *
     * <p>As in verl, k1 is minus the log ratio, so the bounds apply to sampler/target, the reciprocal of the ratio.
     *
     * @param lower positive, at most 1
     * @param upper at least 1, finite; the band holds 1 so that on-policy tokens are kept
     */
    public static RejectionRule ratioBand(RejectionMode mode, double lower, double upper) {
        if (!mode.isTwoSided()) {
            throw new IllegalArgumentException(mode.label() + " is never negative and takes a single upper bound");
        }
        if (!(lower > 0 && lower <= 1 && upper >= 1 && upper < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException("rollout_rs_threshold for " + mode.label()
                    + " must satisfy 0 < lower <= 1 <= upper < infinity, or every on-policy token is rejected: lower="
                    + lower + ", upper=" + upper);
        }
        return within(mode, Math.log(lower), Math.log(upper));
    }

    /** The name in metrics, such as {@code seq_mean_k3}. */
    public String label() {
        return (aggregation == RejectionAggregation.TOKEN ? "token_" : "seq_" + lower(aggregation) + "_")
                + lower(divergence);
    }

    private static String lower(Enum<?> name) {
        return name.name().toLowerCase(Locale.ROOT);
    }

    /** Returns whether there is a lower bound to fall below: k1 has a sign, the others are never negative. */
    public boolean isTwoSided() {
        return divergence == RejectionDivergence.K1 || min > 0;
    }

    /** Returns whether a statistic is inside the bounds. */
    public boolean keeps(double statistic) {
        return statistic <= max && (!isTwoSided() || statistic >= min);
    }
}
