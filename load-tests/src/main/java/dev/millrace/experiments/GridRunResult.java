package dev.millrace.experiments;

import com.fasterxml.jackson.annotation.JsonInclude;
import dev.millrace.experiments.Grid.RunKey;
import dev.millrace.experiments.StepPoint.Evaluation;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * One finished run; a function of its key and settings, so that it is the same whenever and beside whatever it ran.
 *
 * @param settings    it ran under
 * @param points      one per step that was taken
 * @param evaluations the first before the first step
 * @param refused     why it ended early, if a number was not finite; null otherwise
 */
@JsonInclude(JsonInclude.Include.NON_NULL)
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
