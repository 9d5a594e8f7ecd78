package dev.millrace.experiments;

import dev.millrace.experiments.Grid.RunKey;
import dev.millrace.experiments.StepPoint.Evaluation;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A finished run; a function of its key and settings.
 *
 * @param evaluations the first before the first step
 * @param refused the number that was not finite and ended it; null otherwise
 */
record GridRunResult(
        RunKey key,
        StalenessSettings settings,
        List<StepPoint> points,
        List<Evaluation> evaluations,
        @Nullable String refused) {

    GridRunResult {
        points = List.copyOf(points);
        evaluations = List.copyOf(evaluations);
    }
}
