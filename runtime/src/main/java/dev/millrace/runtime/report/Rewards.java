package dev.millrace.runtime.report;

import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;

/**
 * Mean rewards over windows of steps.
 *
 * @param first mean over the first {@value #WINDOW} steps
 * @param best the largest mean over any {@value #WINDOW} consecutive steps
 * @param last mean over the last {@value #WINDOW} steps
 */
public record Rewards(double first, double best, double last) {
    /** Steps in a window; a shorter run is one window. */
    public static final int WINDOW = 10;

    /** Over the steps of a run, in order; all 0 if there are none. */
    public static Rewards over(List<StepRow> steps) {
        int window = Math.min(WINDOW, steps.size());
        if (window == 0) {
            return new Rewards(0, 0, 0);
        }
        double best = Double.NEGATIVE_INFINITY;
        for (int end = window; end <= steps.size(); end++) {
            best = Math.max(best, mean(steps, end - window, end));
        }
        return new Rewards(mean(steps, 0, window), best, mean(steps, steps.size() - window, steps.size()));
    }

    /** Last step of the best window; empty if there are no steps. */
    static Optional<StepRow> bestWindowEnd(List<StepRow> steps) {
        int window = Math.min(WINDOW, steps.size());
        return IntStream.rangeClosed(window, steps.size())
                .filter(end -> end > 0)
                .boxed()
                .max(Comparator.comparingDouble(end -> mean(steps, end - window, end)))
                .map(end -> steps.get(end - 1));
    }

    private static double mean(List<StepRow> steps, int from, int to) {
        double sum = 0;
        for (int i = from; i < to; i++) {
            sum += steps.get(i).reward();
        }
        return sum / (to - from);
    }
}
