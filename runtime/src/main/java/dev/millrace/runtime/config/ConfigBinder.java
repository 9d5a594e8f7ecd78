package dev.millrace.runtime.config;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.topology.settings.CanonicalValues;
import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.RecordComponent;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;

/**
 * Turns a tree of keys and values into configuration records and back.
 *
 * <p>A record component {@code maxStaleness} is the key {@code max_staleness}. What the tree does not name keeps
 * the value of the defaults record; what it names must be known, of the right type, and accepted by the record's
 * own constructor. Components may be int, long, double, boolean, String, an enum, a list of strings or of longs, a map from
 * string to string, another record, or a sealed interface of records: one of several kinds, see {@link Choice}.
 */
public final class ConfigBinder {
    private ConfigBinder() {}

    /**
     * The defaults with the tree put over them.
     *
     * @throws ConfigException naming the key, the value and what is allowed
     */
    public static <R extends Record> R bind(R defaults, JsonNode tree) {
        return bind(defaults, tree, "", Optional.empty());
    }

    private static <R extends Record> R bind(R defaults, JsonNode tree, String path, Optional<Choice> choice) {
        if (!(tree instanceof ObjectNode object)) {
            throw new ConfigException(
                    (path.isEmpty() ? "the configuration" : path) + " must hold keys and values, not " + tree);
        }
        RecordComponent[] components = defaults.getClass().getRecordComponents();
        List<String> known =
                Arrays.stream(components).map(c -> keyOf(c.getName())).toList();
        for (Iterator<String> names = object.fieldNames(); names.hasNext(); ) {
            String name = names.next();
            if (choice.isPresent() && name.equals(Choice.KIND)) {
                continue;
            }
            if (!known.contains(name)
                    && choice.isPresent()
                    && !choice.get().kindsWith(name).isEmpty()) {
                throw new ConfigException("unknown key " + join(path, name) + " for " + join(path, Choice.KIND) + "="
                        + kindOf(defaults) + "; it belongs to "
                        + String.join(", ", choice.get().kindsWith(name)));
            }
            if (!known.contains(name)) {
                throw new ConfigException("unknown key " + join(path, name)
                        + NearestKey.of(name, known)
                                .map(k -> "; did you mean " + join(path, k) + "?")
                                .orElse("; known here: " + String.join(", ", known)));
            }
        }
        Object[] values = new Object[components.length];
        for (int i = 0; i < components.length; i++) {
            String key = keyOf(components[i].getName());
            Object byDefault = read(components[i], defaults);
            JsonNode node = object.get(key);
            values[i] = node == null ? byDefault : convert(join(path, key), node, components[i], byDefault);
        }
        return construct(defaults, components, values, path);
    }

    private static Object convert(String key, JsonNode node, RecordComponent component, Object byDefault) {
        Optional<Choice> choice = Choice.of(component.getType());
        if (choice.isPresent()) {
            Record start = choice.get().start(key, node, (Record) byDefault);
            return node.isObject() ? bind(start, node, key, choice) : start;
        }
        return byDefault instanceof Record record
                ? bind(record, node, key, choice)
                : ConfigValue.of(key, node, component);
    }

    private static <R extends Record> R construct(
            R defaults, RecordComponent[] components, Object[] values, String path) {
        try {
            Class<?>[] types =
                    Arrays.stream(components).map(RecordComponent::getType).toArray(Class<?>[]::new);
            @SuppressWarnings("unchecked")
            Constructor<R> constructor = (Constructor<R>) defaults.getClass().getDeclaredConstructor(types);
            return constructor.newInstance(values);
        } catch (InvocationTargetException e) {
            if (e.getCause() instanceof ConfigException contradiction) { // it names its keys in full
                throw contradiction;
            }
            if (e.getCause() instanceof IllegalArgumentException refusal) {
                throw new ConfigException(join(path, String.valueOf(refusal.getMessage())), refusal);
            }
            throw new IllegalStateException(
                    "the configuration record " + defaults.getClass() + " failed", e.getCause());
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(defaults.getClass() + " is no public configuration record", e);
        }
    }

    /** The tree of a record: every key with its value. */
    public static ObjectNode unbind(Record record) {
        ObjectNode tree = JsonNodeFactory.instance.objectNode();
        for (RecordComponent component : record.getClass().getRecordComponents()) {
            String key = keyOf(component.getName());
            Object value = read(component, record);
            if (value instanceof Record nested) {
                ObjectNode branch = tree.putObject(key);
                if (Choice.of(component.getType()).isPresent()) {
                    branch.put(Choice.KIND, kindOf(nested));
                }
                branch.setAll(unbind(nested));
            } else if (value instanceof Integer number) {
                tree.put(key, number);
            } else if (value instanceof Long number) {
                tree.put(key, number);
            } else if (value instanceof Double number) {
                tree.put(key, number);
            } else if (value instanceof Boolean flag) {
                tree.put(key, flag);
            } else if (value instanceof Enum<?> choice) {
                tree.put(key, choice.name().toLowerCase(Locale.ROOT));
            } else if (value instanceof List<?> list) {
                ArrayNode array = tree.putArray(key);
                list.forEach(element -> {
                    if (element instanceof Long number) {
                        array.add(number);
                    } else {
                        array.add(String.valueOf(element));
                    }
                });
            } else if (value instanceof Map<?, ?> map) {
                ObjectNode object = tree.putObject(key);
                map.forEach((name, setting) -> object.put(String.valueOf(name), String.valueOf(setting)));
            } else {
                tree.put(key, String.valueOf(value));
            }
        }
        return tree;
    }

    /** What a value of a sealed type is called in a configuration. */
    static String kindOf(Object value) {
        return Choice.kindOf(value);
    }

    /** Every key below a record, with dots: {@code learner.learning_rate}. Maps count as one key, of kinds the chosen one counts. */
    public static List<String> keys(Record record) {
        List<String> keys = new ArrayList<>();
        collect("", record, keys);
        return keys;
    }

    private static void collect(String path, Record record, List<String> keys) {
        for (RecordComponent component : record.getClass().getRecordComponents()) {
            String key = join(path, keyOf(component.getName()));
            if (read(component, record) instanceof Record nested) {
                if (Choice.of(component.getType()).isPresent()) {
                    keys.add(join(key, Choice.KIND));
                }
                collect(key, nested, keys);
            } else {
                keys.add(key);
            }
        }
    }

    /** {@code maxStaleness} is written {@code max_staleness}; a run of capitals or digits stays together. */
    public static String keyOf(String component) {
        return CanonicalValues.keyOf(component);
    }

    private static Object read(RecordComponent component, Record record) {
        try {
            return component.getAccessor().invoke(record);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(record.getClass() + " is no public configuration record", e);
        }
    }

    static String join(String path, String key) {
        return path.isEmpty() ? key : path + "." + key;
    }
}
