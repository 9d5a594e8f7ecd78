package dev.millrace.corrections.stage;

import java.util.Collections;
import java.util.Map;
import java.util.OptionalDouble;
import java.util.TreeMap;

/**
 * State that the controls of a step keep from one version to the next, by name. It is published with the version, so
 * that a restarted learner continues unchanged. Immutable.
 */
public record ControlState(Map<String, Double> values) {

    public ControlState {
        values = Collections.unmodifiableMap(new TreeMap<>(values));
    }

    public static ControlState initial() {
        return new ControlState(Map.of());
    }

    /** What is remembered under a name; empty before the first time. */
    public OptionalDouble get(String name) {
        Double value = values.get(name);
        return value == null ? OptionalDouble.empty() : OptionalDouble.of(value);
    }

    /** The same without what has a name that begins so. */
    public ControlState without(String prefix) {
        Map<String, Double> left = new TreeMap<>(values);
        left.keySet().removeIf(name -> name.startsWith(prefix));
        return new ControlState(left);
    }

    public ControlState with(String name, double value) {
        Map<String, Double> changed = new TreeMap<>(values);
        changed.put(name, value);
        return new ControlState(changed);
    }
}
