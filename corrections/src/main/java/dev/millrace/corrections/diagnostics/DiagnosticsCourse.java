package dev.millrace.corrections.diagnostics;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.Optional;

/**
 * The steps of a run as they go by, of which it keeps as many as the decision tree looks at; whoever diagnoses a run puts its
 * steps in here, so that the same steps have the same diagnosis everywhere. Not thread-safe.
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
        this.length = bounds.surgeSteps() + WINDOW;
    }

    /**
     * The next step.
     *
     * @param policies what its policies show; empty if nothing of it was trained on, or it is not known
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

    /** Of the last steps; empty if none of them has trained tokens. */
    public Optional<Diagnosis> diagnose(CorrectionInForce inForce) {
        return steps.isEmpty()
                ? Optional.empty()
                : Optional.of(tree.diagnose(new DiagnosticsWindow(List.copyOf(steps), List.copyOf(course), inForce)));
    }
}
