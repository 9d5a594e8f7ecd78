package dev.millrace.corrections.diagnostics;

import java.util.List;

/**
 * The last steps of a run, oldest first, and what was in force while they were made.
 *
 * @param steps at least one, each with trained tokens
 * @param course facts of the last steps, further back than {@code steps}: a length surge needs a hundred
 */
public record DiagnosticsWindow(List<DiagnosticsStep> steps, List<StepFacts> course, CorrectionInForce inForce) {
    public DiagnosticsWindow {
        steps = List.copyOf(steps);
        course = List.copyOf(course);
        if (steps.isEmpty()) {
            throw new IllegalArgumentException("a window needs at least one step");
        }
        for (int i = 0; i < steps.size(); i++) {
            if (steps.get(i).gap().all().tokens() == 0) {
                throw new IllegalArgumentException("a step of a window needs trained tokens: step=" + i);
            }
        }
    }

    DiagnosticsStep last() {
        return steps.get(steps.size() - 1);
    }
}
