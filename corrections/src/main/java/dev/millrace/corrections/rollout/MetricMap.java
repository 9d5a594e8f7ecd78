package dev.millrace.corrections.rollout;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;

/** Collects metrics under one prefix, in the order they are put; a name put twice is a defect. */
final class MetricMap {
    private final Map<String, Double> values = new LinkedHashMap<>();
    private final String prefix;

    MetricMap(String prefix) {
        this.prefix = prefix;
    }

    void put(String name, double value) {
        if (values.put(prefix + name, value) != null) {
            throw new IllegalStateException("metric put twice: " + prefix + name);
        }
    }

    Map<String, Double> asMap() {
        return Collections.unmodifiableMap(values);
    }
}
