package dev.millrace.runtime.report;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.report.Sample;
import java.util.List;
import java.util.Optional;
import java.util.function.ToDoubleFunction;

/**
 * Staleness and off-policy figures of a run's trained steps, before and after masks. Medians are over the steps that have the figure;
 * without such a step a figure is NaN, and null in JSON.
 *
 * @param staleness empty if no token was trained on
 * @param ess empty if no step has one
 * @param secondMoment median before the second-moment mask
 * @param secondMomentTrained median of the tokens trained on
 * @param kl median of k1 between behavior and current
 * @param trainedShare tokens trained on, of all in batches that were trainable before any stage
 * @param starvedSteps batches without a token left
 */
public record StepFiguresSummary(
        Optional<Staleness> staleness,
        Optional<Ess> ess,
        double secondMoment,
        double secondMomentTrained,
        double kl,
        double trainedShare,
        long starvedSteps) {

    /** In versions, over the tokens of all steps; the mean is the sum of the two parts. */
    public record Staleness(double mean, long max, double inFlight, double inQueue) {}

    /** ESS ratios of the steps: of raw weights, and of truncated ones. */
    public record Ess(double median, double least, double truncatedMedian, double truncatedLeast) {}

    static StepFiguresSummary of(List<StepRow> steps) {
        long trainable = steps.stream().mapToLong(StepRow::tokensTrainable).sum();
        return new StepFiguresSummary(
                stalenessOf(steps.stream()
                        .filter(step -> step.tokensTrained() > 0 && !Double.isNaN(step.stalenessMean()))
                        .toList()),
                essOf(steps),
                median(steps, StepRow::secondMoment),
                median(steps, StepRow::secondMomentTrained),
                median(steps, StepRow::kl),
                trainable == 0
                        ? Double.NaN
                        : (double) steps.stream()
                                        .filter(step -> step.tokensTrainable() > 0)
                                        .mapToLong(StepRow::tokensTrained)
                                        .sum()
                                / trainable,
                steps.stream().filter(StepRow::starved).count());
    }

    private static Optional<Staleness> stalenessOf(List<StepRow> trained) {
        if (trained.isEmpty()) {
            return Optional.empty();
        }
        return Optional.of(new Staleness(
                overTokens(trained, StepRow::stalenessMean),
                (long) trained.stream().mapToDouble(StepRow::stalenessMax).max().orElseThrow(),
                overTokens(trained, StepRow::stalenessInFlight),
                overTokens(trained, StepRow::stalenessInQueue)));
    }

    private static double overTokens(List<StepRow> trained, ToDoubleFunction<StepRow> figure) {
        double sum = 0;
        long tokens = 0;
        for (StepRow step : trained) {
            sum += figure.applyAsDouble(step) * step.tokensTrained();
            tokens += step.tokensTrained();
        }
        return sum / tokens;
    }

    private static Optional<Ess> essOf(List<StepRow> steps) {
        Optional<Sample> truncated = known(steps, StepRow::essRatioTruncated);
        return known(steps, StepRow::essRatio)
                .map(raw -> new Ess(
                        raw.median(),
                        raw.min(),
                        truncated.map(Sample::median).orElse(Double.NaN),
                        truncated.map(Sample::min).orElse(Double.NaN)));
    }

    private static double median(List<StepRow> steps, ToDoubleFunction<StepRow> figure) {
        return known(steps, figure).map(Sample::median).orElse(Double.NaN);
    }

    private static Optional<Sample> known(List<StepRow> steps, ToDoubleFunction<StepRow> figure) {
        List<Double> values = steps.stream()
                .mapToDouble(figure)
                .filter(Double::isFinite)
                .boxed()
                .toList();
        return values.isEmpty() ? Optional.empty() : Optional.of(Sample.of(values));
    }

    /** Puts the figures into the summary; the names are a contract. */
    void addTo(ObjectNode json) {
        ObjectNode of = json.putObject("staleness");
        put(of, "mean", staleness.map(Staleness::mean));
        of.put("max", staleness.map(Staleness::max).orElse(null));
        put(of, "in_flight", staleness.map(Staleness::inFlight));
        put(of, "in_queue", staleness.map(Staleness::inQueue));
        ObjectNode sizes = json.putObject("ess");
        put(sizes, "min", ess.map(Ess::least));
        put(sizes, "median", ess.map(Ess::median));
        put(sizes, "truncated_min", ess.map(Ess::truncatedLeast));
        put(sizes, "truncated_median", ess.map(Ess::truncatedMedian));
        ObjectNode moments = json.putObject("second_moment");
        put(moments, "median", Optional.of(secondMoment));
        put(moments, "trained_median", Optional.of(secondMomentTrained));
        put(json, "kl_median", Optional.of(kl));
        put(json, "trained_share", Optional.of(trainedShare));
        json.put("starved_steps", starvedSteps);
    }

    private static void put(ObjectNode json, String name, Optional<Double> value) {
        json.put(name, value.filter(Double::isFinite).orElse(null));
    }
}
