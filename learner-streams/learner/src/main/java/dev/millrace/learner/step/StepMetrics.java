package dev.millrace.learner.step;

import java.util.Collections;
import java.util.EnumMap;
import java.util.Map;
import java.util.TreeMap;

/**
 * The numbers that a step says of itself: means over the updates, sums of durations, facts about the batch. What was not computed
 * is absent.
 *
 * @param updates optimiser steps taken; 0 if nothing in the batch was to be trained on, and nothing changed
 * @param objective numbers of the objective's own, by its names, means over the updates
 */
public record StepMetrics(int updates, Map<StepMetric, Double> values, Map<String, Double> objective) {
    public static final StepMetrics NONE = new StepMetrics(0, Map.of(), Map.of());

    public StepMetrics {
        Map<StepMetric, Double> copy = new EnumMap<>(StepMetric.class);
        copy.putAll(values);
        values = Collections.unmodifiableMap(copy);
        objective = Collections.unmodifiableMap(new TreeMap<>(objective));
    }

    /** A number; NaN if it was not computed. */
    public double orNaN(StepMetric metric) {
        return values.getOrDefault(metric, Double.NaN);
    }

    public Map<String, Double> byName() {
        Map<String, Double> named = new TreeMap<>(objective);
        named.put(StepMetric.UPDATES.key(), (double) updates);
        values.forEach((metric, value) -> named.put(metric.key(), value));
        return named;
    }
}
