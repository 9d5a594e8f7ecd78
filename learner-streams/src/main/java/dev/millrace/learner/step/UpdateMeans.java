package dev.millrace.learner.step;

import java.util.Map;
import java.util.TreeMap;

/** Means over the updates of one batch, and sums of what is a duration. */
final class UpdateMeans {
    private final Map<String, Double> sums = new TreeMap<>();
    private final Map<String, Double> seconds = new TreeMap<>();
    private int updates;

    void beginUpdate() {
        updates++;
    }

    void add(String metric, double value) {
        sums.merge(metric, value, Double::sum);
    }

    void addSeconds(String phase, long sinceNanos) {
        seconds.merge("seconds_" + phase, (System.nanoTime() - sinceNanos) / 1e9, Double::sum);
    }

    int updates() {
        return updates;
    }

    Map<String, Double> values() {
        Map<String, Double> values = new TreeMap<>(seconds);
        sums.forEach((metric, sum) -> values.put(metric, sum / updates));
        return values;
    }
}
