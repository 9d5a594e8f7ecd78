package dev.millrace.cli.replay;

import dev.millrace.replay.StepFigures;
import java.util.List;
import java.util.function.ToDoubleFunction;

/**
 * One of the numbers of a step that the report shows.
 *
 * @param key in CSV and JSON
 * @param title for people
 * @param of the number
 */
record Figure(String key, String title, ToDoubleFunction<StepFigures> of) {

    /** In the order in which they are shown. */
    static final List<Figure> ALL = List.of(
            new Figure("masked_tokens", "masked tokens (share)", f -> f.tokens().fraction()),
            new Figure(
                    "masked_sequences",
                    "masked sequences (share)",
                    f -> f.sequences().fraction()),
            new Figure("ess_ratio", "ESS ratio, raw weights", StepFigures::essRatio),
            new Figure("ess_ratio_truncated", "ESS ratio, truncated weights", StepFigures::essRatioTruncated),
            new Figure("step_scale", "factor on the step", StepFigures::stepScale),
            new Figure("mean_weight", "mean weight of trained tokens", StepFigures::meanWeight),
            new Figure("max_weight", "largest weight", StepFigures::maxWeight),
            new Figure(
                    "changed_weights",
                    "weights truncated or zeroed (share)",
                    f -> f.tokens().of() == 0
                            ? 0
                            : (double) f.changedWeights() / f.tokens().of()),
            new Figure("second_moment", "second moment before its mask (M2)", StepFigures::secondMoment),
            new Figure("k1", "KL by k1, trained tokens", StepFigures::k1),
            new Figure("k3", "KL by k3, trained tokens", StepFigures::k3),
            new Figure("chi_square", "chi-square, trained tokens", StepFigures::chiSquare),
            new Figure("mean_absolute_advantage", "mean |advantage|", StepFigures::meanAbsoluteAdvantage),
            new Figure("changed_advantages", "advantages other than recorded", f -> f.changedAdvantages()));
}
