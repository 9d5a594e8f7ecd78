package dev.millrace.corrections.stage;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.RecordComponent;
import java.util.Locale;
import java.util.SortedMap;
import java.util.TreeMap;

/** The settings of a stage as a report and a configuration name them. */
public final class StageSettings {
    private StageSettings() {}

    /** A stage's kind: the record's own name in small letters, words joined by underscores. */
    public static String kindOf(Class<?> stage) {
        return keyOf(stage.getSimpleName());
    }

    private static String keyOf(String name) {
        return name.replaceAll("([a-z0-9])([A-Z])", "$1_$2").toLowerCase(Locale.ROOT);
    }

    /**
     * The numbers and truth values among a record's components by their keys, a truth value as 1 or 0; what else there is has
     * no place in a report of numbers. May be added to.
     *
     * @throws IllegalArgumentException if the stage is no public record
     */
    public static SortedMap<String, Double> of(Stage stage) {
        if (!(stage instanceof Record)) {
            throw new IllegalArgumentException("a stage must be a record, whose components are its settings: "
                    + stage.getClass().getName());
        }
        SortedMap<String, Double> settings = new TreeMap<>();
        for (RecordComponent component : stage.getClass().getRecordComponents()) {
            Object value = value(component, stage);
            if (value instanceof Number number) {
                settings.put(keyOf(component.getName()), number.doubleValue());
            } else if (value instanceof Boolean yes) {
                settings.put(keyOf(component.getName()), yes ? 1.0 : 0.0);
            }
        }
        return settings;
    }

    private static Object value(RecordComponent component, Stage stage) {
        try {
            return component.getAccessor().invoke(stage);
        } catch (IllegalAccessException unreadable) {
            throw new IllegalArgumentException(
                    "a stage must be a public record: " + stage.getClass().getName(), unreadable);
        } catch (InvocationTargetException thrown) {
            throw new IllegalArgumentException(
                    "setting " + component.getName() + " of " + stage.name() + " cannot be read", thrown.getCause());
        }
    }
}
