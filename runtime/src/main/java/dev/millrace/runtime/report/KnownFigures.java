package dev.millrace.runtime.report;

import dev.millrace.learner.step.StepMetric;
import dev.millrace.report.Format;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;
import java.util.function.ToDoubleFunction;
import java.util.function.ToLongFunction;
import org.jspecify.annotations.Nullable;

/**
 * Every named figure of a step: the fields of a training-log record, values derived from them, and the metrics of
 * Millrace's learner. steps.csv, the meters, TensorBoard's files and the pages take the names from here.
 *
 * <p>Figures of an objective, a stage, a plug-in or another trainer keep their name in the training log.
 */
public final class KnownFigures {
    private static final List<StepFigure> FIELDS = List.of(
            count("step", "steps", "number of the step, from 1", StepRow::step),
            count("version", "versions", "version that the step made, or kept if starved", StepRow::version),
            number("reward", "", "mean reward of the batch's rollouts", StepRow::reward),
            number(
                    "staleness_mean",
                    "versions",
                    "version at step start minus sampling version, mean over trained tokens",
                    StepRow::stalenessMean),
            new StepFigure(
                    "staleness_max",
                    "versions",
                    "maximum of the same",
                    new Format(Format.Kind.COUNT, 0),
                    KnownFigures::stalenessMax),
            number(
                    "staleness_in_flight_mean",
                    "versions",
                    "part of the mean until scoring",
                    StepRow::stalenessInFlight),
            number(
                    "staleness_in_queue_mean",
                    "versions",
                    "part of the mean from scoring to the step",
                    StepRow::stalenessInQueue),
            number("ess_ratio", "share", "effective sample size of the raw sequence weights", StepRow::essRatio),
            number("ess_ratio_truncated", "share", "the same of truncated weights", StepRow::essRatioTruncated),
            number(
                    "second_moment",
                    "",
                    "mean squared log-ratio proximal/behavior before the second-moment mask",
                    StepRow::secondMoment),
            number("second_moment_trained", "", "the same of trained tokens", StepRow::secondMomentTrained),
            metric(StepMetric.APPROX_KL_BEHAVIOR),
            number(
                    "learning_rate",
                    "",
                    "learning rate with the step scale",
                    row -> row.logged().getLearningRate()),
            metric(StepMetric.LOSS),
            metric(StepMetric.GRAD_NORM),
            metric(StepMetric.ENTROPY),
            count(
                    "rollouts_trained",
                    "rollouts",
                    "rollouts with a trained token",
                    row -> row.logged().getRolloutsTrained()),
            count(
                    "rollouts_masked",
                    "rollouts",
                    "rollouts of the batch without a trained token",
                    row -> row.logged().getRolloutsMasked()),
            count(
                    "rollouts_consumed",
                    "rollouts",
                    "rollouts in all batches so far; 0 if unknown",
                    row -> row.logged().getRolloutsConsumed()),
            count("tokens_trainable", "tokens", "tokens before any stage; 0 if unknown", StepRow::tokensTrainable),
            count("tokens_trained", "tokens", "trained tokens", StepRow::tokensTrained),
            number("trained_share", "share", "trained / trainable tokens", StepRow::trainedShare),
            new StepFigure(
                    "starved",
                    "",
                    "1 if no token was left to train on",
                    new Format(Format.Kind.COUNT, 0),
                    StepRow::starved),
            count(
                    "started_at_ms",
                    "milliseconds",
                    "start of the step, Unix time",
                    row -> row.logged().getStartedAtMs()),
            count("finished_at_ms", "milliseconds", "end of the step, Unix time", StepRow::finishedAtMs),
            number("seconds", "seconds", "duration of the step", StepRow::seconds),
            number("idle_ratio", "share", "wait for the batch / wait and step", StepRow::idleRatio),
            number("tokens_per_second", "tokens/s", "trained tokens / time of wait and step", StepRow::tokensPerSecond),
            new StepFigure(
                    "weights_sha256",
                    "",
                    "SHA-256 of the version's weights",
                    new Format(Format.Kind.TEXT, 0),
                    row -> row.logged().getWeightsSha256()));

    private static final Map<String, StepFigure> ALL = all(FIELDS);

    private KnownFigures() {}

    /** Columns of steps.csv that every run has, in order. */
    static List<StepFigure> ofEveryRun() {
        return FIELDS;
    }

    /** All figures: those of every run, then the learner's metrics. */
    public static List<StepFigure> all() {
        return List.copyOf(ALL.values());
    }

    /** Returns the figure of a key; empty if it belongs to an objective, a stage, a plug-in or another trainer. */
    public static Optional<StepFigure> find(String key) {
        return Optional.ofNullable(ALL.get(key));
    }

    private static Map<String, StepFigure> all(List<StepFigure> fields) {
        Map<String, StepFigure> all = new LinkedHashMap<>();
        List<StepFigure> figures = new ArrayList<>(fields);
        for (StepMetric metric : StepMetric.values()) {
            figures.add(metric(metric));
        }
        figures.forEach(figure -> all.putIfAbsent(figure.key(), figure));
        return all;
    }

    private static @Nullable Long stalenessMax(StepRow row) {
        return Double.isNaN(row.stalenessMax()) ? null : (long) row.stalenessMax();
    }

    private static StepFigure count(String key, String unit, String meaning, ToLongFunction<StepRow> value) {
        Function<StepRow, Long> boxed = value::applyAsLong;
        return new StepFigure(key, unit, meaning, new Format(Format.Kind.COUNT, 0), boxed);
    }

    private static StepFigure number(String key, String unit, String meaning, ToDoubleFunction<StepRow> value) {
        Function<StepRow, Double> boxed = value::applyAsDouble;
        return new StepFigure(key, unit, meaning, new Format(Format.Kind.DECIMALS, 6), boxed);
    }

    private static StepFigure metric(StepMetric metric) {
        return number(metric.key(), metric.unit(), metric.meaning(), row -> row.metric(metric));
    }
}
