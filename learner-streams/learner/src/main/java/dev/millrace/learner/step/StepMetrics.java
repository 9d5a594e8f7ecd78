package dev.millrace.learner.step;

import java.util.Map;
import java.util.TreeMap;

/** Means over the updates of one batch, sums of what is a duration, and what is said once. */
final class StepMetrics {
    private final Map<String, Double> sums = new TreeMap<>();
    private final Map<String, Double> seconds = new TreeMap<>();
    private final Map<String, Double> once = new TreeMap<>();
    private int updates;

    void beginUpdate() {
        updates++;
    }

    void add(String metric, double value) {
        sums.merge(metric, value, Double::sum);
    }

    /** A fact about the batch, not about an update. */
    void once(String metric, double value) {
        once.put(metric, value);
    }

    void addSeconds(String phase, long sinceNanos) {
        seconds.merge("seconds_" + phase, (System.nanoTime() - sinceNanos) / 1e9, Double::sum);
    }

    /** A forward pass of its own over some members. */
    void addForward(long sinceNanos) {
        addSeconds("forward", sinceNanos);
        once.merge("forward_passes", 1.0, Double::sum);
    }

    int updates() {
        return updates;
    }

    Map<String, Double> values() {
        Map<String, Double> values = new TreeMap<>(seconds);
        values.putAll(once);
        sums.forEach((metric, sum) -> values.put(metric, sum / updates));
        return values;
    }
}
