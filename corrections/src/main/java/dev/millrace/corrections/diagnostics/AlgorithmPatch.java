package dev.millrace.corrections.diagnostics;

import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Keys of {@code algorithm} that override a run's own: a fix as data, which can be bound, refused, pasted and tried.
 *
 * @param keys under {@code algorithm}, in the order in which they are written; values are texts, whole numbers, or such maps again
 * @param effect part of a run that it changes, which decides what a replay can show
 */
public record AlgorithmPatch(Map<String, Object> keys, Effect effect) {

    /** Target of a patch. */
    public enum Effect {
        /** Masks and weights: replaying the recorded decisions shows the effect. */
        DECISION,
        /** The step size, by response lengths: the recorded lengths show where it would have acted. */
        STEP_SIZE,
        /** The updates within a step: only relearning shows the effect. */
        UPDATES
    }

    public AlgorithmPatch {
        if (keys.isEmpty()) {
            throw new IllegalArgumentException(
                    "a patch needs at least one key; where nothing can be patched there is none");
        }
        keys = frozen(keys);
    }

    private static Map<String, Object> frozen(Map<?, ?> keys) {
        Map<String, Object> copy = new LinkedHashMap<>();
        keys.forEach((key, value) -> {
            if (value instanceof Map<?, ?> inner) {
                copy.put((String) key, frozen(inner));
            } else if (value instanceof String || value instanceof Integer) {
                copy.put((String) key, value);
            } else {
                throw new IllegalArgumentException(
                        "a value of a patch is a text, a whole number or keys again: " + key + "=" + value);
            }
        });
        return Collections.unmodifiableMap(copy);
    }

    /** Each as {@code algorithm.weights.kind=token}, for {@code --set}. */
    public List<String> settings() {
        List<String> settings = new ArrayList<>();
        flatten("algorithm", keys, settings);
        return List.copyOf(settings);
    }

    private static void flatten(String path, Map<?, ?> keys, List<String> settings) {
        keys.forEach((key, value) -> {
            if (value instanceof Map<?, ?> inner) {
                flatten(path + "." + key, inner, settings);
            } else {
                settings.add(path + "." + key + "=" + value);
            }
        });
    }

    /** In a line, without the section's name. */
    @Override
    public String toString() {
        return String.join(
                ", ",
                settings().stream()
                        .map(setting -> setting.substring("algorithm.".length()))
                        .toList());
    }
}
