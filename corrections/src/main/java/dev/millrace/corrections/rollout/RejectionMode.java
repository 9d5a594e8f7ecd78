package dev.millrace.corrections.rollout;

import java.util.Arrays;
import java.util.Locale;
import java.util.stream.Collectors;

/**
 * The eleven statistics a rejection can threshold, under the names verl gives them ({@code rollout_rs}).
 *
 * <p>There is no {@code seq_max_k1}: the largest of a signed estimate says nothing about its most negative one.
 */
public enum RejectionMode {
    TOKEN_K1(RejectionAggregation.TOKEN, RejectionDivergence.K1),
    TOKEN_K2(RejectionAggregation.TOKEN, RejectionDivergence.K2),
    TOKEN_K3(RejectionAggregation.TOKEN, RejectionDivergence.K3),
    SEQ_SUM_K1(RejectionAggregation.SUM, RejectionDivergence.K1),
    SEQ_SUM_K2(RejectionAggregation.SUM, RejectionDivergence.K2),
    SEQ_SUM_K3(RejectionAggregation.SUM, RejectionDivergence.K3),
    SEQ_MEAN_K1(RejectionAggregation.MEAN, RejectionDivergence.K1),
    SEQ_MEAN_K2(RejectionAggregation.MEAN, RejectionDivergence.K2),
    SEQ_MEAN_K3(RejectionAggregation.MEAN, RejectionDivergence.K3),
    SEQ_MAX_K2(RejectionAggregation.MAX, RejectionDivergence.K2),
    SEQ_MAX_K3(RejectionAggregation.MAX, RejectionDivergence.K3);

    private final RejectionAggregation aggregation;
    private final RejectionDivergence divergence;

    RejectionMode(RejectionAggregation aggregation, RejectionDivergence divergence) {
        this.aggregation = aggregation;
        this.divergence = divergence;
    }

    /** The name in configurations and metrics, such as {@code seq_mean_k3}. */
    public String label() {
        return name().toLowerCase(Locale.ROOT);
    }

    public RejectionAggregation aggregation() {
        return aggregation;
    }

    public RejectionDivergence divergence() {
        return divergence;
    }

    /** Returns whether the statistic is bounded on both sides: only k1, which has a sign. */
    public boolean isTwoSided() {
        return divergence == RejectionDivergence.K1;
    }

    /**
     * The mode with this label.
     *
     * @throws IllegalArgumentException listing the known labels
     */
    public static RejectionMode labelled(String label) {
        for (RejectionMode mode : values()) {
            if (mode.label().equals(label)) {
                return mode;
            }
        }
        throw new IllegalArgumentException("unknown rollout_rs option '" + label + "'; known: "
                + Arrays.stream(values()).map(RejectionMode::label).collect(Collectors.joining(", ")));
    }
}
