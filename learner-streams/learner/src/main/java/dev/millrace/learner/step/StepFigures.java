package dev.millrace.learner.step;

import dev.millrace.corrections.m2po.SecondMomentMask;
import dev.millrace.corrections.ratio.LogRatio;
import dev.millrace.corrections.stage.Decision;
import dev.millrace.corrections.staleness.StepStaleness;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;

/**
 * Staleness and off-policy figures of a step's data: raw values, and values over the trained tokens. A step without a
 * token has no figures.
 *
 * @param tokensTrainable tokens before any stage, by the trajectories' own masks
 * @param staleness of the tokens trained on, at the start of the step; empty without one
 * @param essRatio effective sample size of the raw sequence weights; NaN without a token, or in bypass mode, which
 *     compares nothing
 * @param secondMoment mean squared log ratio of proximal to behavior, before the second-moment mask; NaN without a token
 */
public record StepFigures(
        long tokensTrainable,
        Optional<StepStaleness> staleness,
        double essRatio,
        double essRatioTruncated,
        double secondMoment,
        double secondMomentTrained) {

    public Map<String, Double> byName() {
        Map<String, Double> named = new TreeMap<>();
        named.put("tokens_trainable", (double) tokensTrainable);
        staleness.ifPresent(of -> {
            named.put("staleness_mean", of.mean());
            named.put("staleness_max", (double) of.max());
            named.put("staleness_in_flight_mean", of.inFlightMean());
            named.put("staleness_in_queue_mean", of.inQueueMean());
        });
        named.putAll(stalenessQuantiles());
        named.put("ess_ratio", essRatio);
        named.put("ess_ratio_truncated", essRatioTruncated);
        named.put("second_moment", secondMoment);
        named.put("second_moment_trained", secondMomentTrained);
        named.values().removeIf(value -> value.isNaN());
        return named;
    }

    /**
     * Returns staleness quantiles of the trained tokens under their names in the training log; empty without a token.
     */
    public Map<String, Double> stalenessQuantiles() {
        Map<String, Double> named = new TreeMap<>();
        staleness.ifPresent(of -> {
            named.put(StepMetric.STALENESS_P50.key(), (double) of.quantile(0.5));
            named.put(StepMetric.STALENESS_P90.key(), (double) of.quantile(0.9));
            named.put(StepMetric.STALENESS_P99.key(), (double) of.quantile(0.99));
        });
        return named;
    }

    /** @param version from which the step started */
    static StepFigures of(StepMembers members, StepDecision decision, long version) {
        if (decision.left().trainedTokens() == 0) {
            return untrained(members);
        }
        Decision decided = decision.decided();
        return new StepFigures(
                members.own().trainedTokens(),
                StepStaleness.of(decision.left(), members.versions(), members.proximalVersions(), version),
                decided.essRatio().orElse(Double.NaN),
                decided.essRatioTruncated().orElse(Double.NaN),
                decided.secondMoment().orElse(Double.NaN),
                decided.secondMoment().isPresent()
                        ? SecondMomentMask.mean(
                                decision.left(), LogRatio.anchor(decision.proximal(), members.behavior()))
                        : Double.NaN);
    }

    /** Returns the figures of a step that trained on no token. */
    static StepFigures untrained(StepMembers members) {
        return new StepFigures(
                members.own().trainedTokens(), Optional.empty(), Double.NaN, Double.NaN, Double.NaN, Double.NaN);
    }
}
