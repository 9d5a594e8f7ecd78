package dev.millrace.corrections.diagnostics;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.Optional;

/**
 * Sliding window over the steps of a run that keeps as many steps as the decision tree needs. All code that diagnoses a
 * run uses it, so that the same steps get the same diagnosis everywhere. Not thread-safe.
 */
public final class DiagnosticsCourse {
    /** Batches whose policies are looked at. */
    public static final int WINDOW = 8;

    private final DecisionTree tree;
    private final int length;
    private final Deque<DiagnosticsStep> steps = new ArrayDeque<>();
    private final Deque<StepFacts> course = new ArrayDeque<>();

    public DiagnosticsCourse(TreeBounds bounds) {
        this.tree = new DecisionTree(bounds);
        this.length = bounds.course().surgeSteps() + WINDOW;
    }

    /**
     * Adds the next step.
     *
     * @param policies comparison of the step's policies; empty if the step trained on nothing or the comparison is
     *     unknown
     */
    public void add(Optional<DiagnosticsStep> policies, StepFacts facts) {
        policies.ifPresent(step -> keep(steps, step, WINDOW));
        keep(course, facts, length);
    }

    private static <T> void keep(Deque<T> last, T next, int most) {
        last.addLast(next);
        if (last.size() > most) {
            last.removeFirst();
        }
    }

    /** Diagnoses the last steps; empty if none of them has trained tokens. */
    public Optional<Diagnosis> diagnose(CorrectionInForce inForce) {
        return steps.isEmpty()
                ? Optional.empty()
                : Optional.of(tree.diagnose(new DiagnosticsWindow(List.copyOf(steps), List.copyOf(course), inForce)));
    }
}
