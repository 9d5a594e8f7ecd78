package dev.millrace.replay.report;

import dev.millrace.replay.DecidedFigures;
import dev.millrace.replay.retrain.VariantGradient;
import dev.millrace.replay.retrain.VariantStep;
import dev.millrace.report.Axis;
import dev.millrace.report.Chart;
import dev.millrace.report.Column;
import dev.millrace.report.Series;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.function.Function;
import java.util.function.IntFunction;
import java.util.function.ToDoubleFunction;

/**
 * A number of a step or gradient.
 *
 * @param of NaN for none
 */
record Figure<T>(String key, String title, ToDoubleFunction<T> of) {

    static final List<Figure<DecidedFigures>> DECIDED = List.of(
            new Figure<>(
                    "masked_tokens", "masked tokens (share)", f -> f.tokens().fraction()),
            new Figure<>(
                    "masked_sequences",
                    "masked sequences (share)",
                    f -> f.sequences().fraction()),
            new Figure<>("ess_ratio", "ESS ratio, raw weights", f -> f.step().essRatio()),
            new Figure<>(
                    "ess_ratio_truncated",
                    "ESS ratio, truncated weights",
                    f -> f.step().essRatioTruncated()),
            new Figure<>("step_scale", "factor on the step", f -> f.step().scale()),
            new Figure<>(
                    "mean_weight",
                    "mean weight of trained tokens",
                    f -> f.kept().meanWeight()),
            new Figure<>("max_weight", "largest weight", f -> f.kept().maxWeight()),
            new Figure<>(
                    "changed_weights",
                    "weights truncated or zeroed (share)",
                    f -> f.tokens().of() == 0
                            ? 0
                            : (double) f.kept().changedWeights() / f.tokens().of()),
            new Figure<>(
                    "second_moment",
                    "second moment before its mask (M2)",
                    f -> f.step().secondMoment()),
            new Figure<>("k1", "KL by k1, trained tokens", f -> f.kept().k1()),
            new Figure<>("k3", "KL by k3, trained tokens", f -> f.kept().k3()),
            new Figure<>(
                    "chi_square", "chi-square, trained tokens", f -> f.kept().chiSquare()),
            new Figure<>(
                    "gradient_power",
                    "gradient power by a forward pass, trained tokens",
                    f -> f.counting().gradientPower()),
            new Figure<>(
                    "mean_absolute_advantage",
                    "mean |advantage|",
                    f -> f.advantages().meanAbsolute()),
            new Figure<>(
                    "changed_advantages",
                    "advantages other than recorded",
                    f -> f.advantages().changed()));

    static final List<Figure<VariantStep>> TRAINED = List.of(
            new Figure<>("batch_reward", "reward of the training batch", VariantStep::batchReward),
            new Figure<>(
                    "rollouts_as_recorded",
                    "rollouts of the batch that are the recorded ones, bit for bit",
                    step -> step.rolloutsAsRecorded()),
            new Figure<>(
                    "kl_to_recorded",
                    "KL to the recorded policy of the same version (k2, recorded tokens)",
                    step -> step.estimates().klToRecorded()),
            new Figure<>("distance", "distance of the weights from the recorded ones (L2)", VariantStep::distance),
            new Figure<>(
                    "ess_ratio",
                    "ESS ratio, raw weights, as decided",
                    step -> step.update().essRatio()),
            new Figure<>(
                    "second_moment",
                    "second moment before its mask (M2), as decided",
                    step -> step.update().secondMoment()),
            new Figure<>(
                    "grad_norm",
                    "gradient norm before clipping",
                    step -> step.update().gradNorm()),
            new Figure<>(
                    "clip_fraction",
                    "tokens whose ratio the objective clipped (share)",
                    step -> step.update().clipFraction()),
            new Figure<>("loss", "loss", step -> step.update().loss()),
            new Figure<>(
                    "learning_rate",
                    "learning rate, all controls included",
                    step -> step.update().learningRate()),
            new Figure<>(
                    "tokens_trained", "tokens trained on", step -> step.update().tokensTrained()),
            new Figure<>(
                    "reward_estimate",
                    "reward of this policy, estimated from the batch by importance weights",
                    step -> step.estimates().reward()),
            new Figure<>(
                    "estimate_ess",
                    "ESS ratio of that estimate",
                    step -> step.estimates().ess()));

    static final List<Figure<VariantGradient>> GRADIENT = List.of(
            new Figure<>("cosine_to_reference", "cosine to the on-policy gradient", VariantGradient::cosineToReference),
            new Figure<>(
                    "sga_progress",
                    "SGA progress, share of the true gradient's",
                    gradient -> gradient.sga().progress()),
            new Figure<>(
                    "alignment",
                    "alignment <g, g'> / |g|^2",
                    gradient -> gradient.sga().alignment()),
            new Figure<>("cosine_to_update", "cosine to the recorded update", VariantGradient::cosineToUpdate),
            new Figure<>("norm", "gradient norm", VariantGradient::norm),
            new Figure<>(
                    "signal",
                    "signal: squared norm less noise",
                    gradient -> gradient.sga().signal()),
            new Figure<>(
                    "noise",
                    "noise: variance of the gradient",
                    gradient -> gradient.sga().noise()),
            new Figure<>("ess_ratio", "ESS ratio, raw weights", VariantGradient::essRatio),
            new Figure<>("step_scale", "factor on the step", VariantGradient::stepScale),
            new Figure<>("tokens_trained", "tokens trained on", gradient -> gradient.tokensTrained()));

    static <T> Figure<T> named(List<Figure<T>> figures, String key) {
        return figures.stream()
                .filter(figure -> figure.key().equals(key))
                .findFirst()
                .orElseThrow();
    }

    /** Appends columns of all figures to a row's own. */
    static <R, T> List<Column<R>> columns(List<Column<R>> own, List<Figure<T>> figures, Function<R, T> of) {
        List<Column<R>> columns = new ArrayList<>(own);
        figures.forEach(figure -> columns.add(
                Column.significant(figure.key(), 6, row -> figure.of().applyAsDouble(of.apply(row)))));
        return columns;
    }

    static Chart chart(String title, Axis axis, double[] x, List<String> names, IntFunction<double[]> values) {
        List<Series> series = new ArrayList<>();
        for (int i = 0; i < names.size(); i++) {
            series.add(Series.line(names.get(i), x, values.apply(i)));
        }
        return Chart.of(title, axis, Axis.of(""), series);
    }

    /** A value per step; NaN where there is none. */
    static <S, T> double[] curve(List<S> steps, Function<S, Optional<T>> variant, ToDoubleFunction<T> of) {
        return steps.stream()
                .mapToDouble(step -> variant.apply(step).map(of::applyAsDouble).orElse(Double.NaN))
                .toArray();
    }

    /** Over the finite values; NaN without any. */
    static double mean(double[] curve) {
        return Arrays.stream(curve).filter(Double::isFinite).average().orElse(Double.NaN);
    }
}
