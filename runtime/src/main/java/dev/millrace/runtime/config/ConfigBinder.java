package dev.millrace.runtime.config;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.topology.CanonicalValues;
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
 * <p>A record component {@code maxStaleness} is the key {@code max_staleness}. Keys that the tree leaves out keep the
 * value of the defaults record; keys that it has must be known, of the right type, and accepted by the record's
 * constructor. Components may be int, long, double, boolean, String, an enum, a list of strings or longs, or a map of
 * strings. They may also be another record, or one or a list of several kinds, see {@link Choice}. A list is given as
 * a whole, or by single elements with their index from 0: {@code masks[0].threshold}.
 *
 * <p>A record may have named variants: a {@code String} component {@code variant} and a public static {@code variant(String)} that
 * gives the whole record of a name. Then the name alone stands for the whole record, and other keys override the
 * variant that {@code variant} names.
 */
public final class ConfigBinder {
    private static final ObjectMapper JSON = new ObjectMapper();

    private ConfigBinder() {}

    /**
     * Returns the defaults overridden by the tree.
     *
     * @throws ConfigException naming the key, the value and what is allowed
     */
    public static <R extends Record> R bind(R defaults, JsonNode tree) {
        return bind(defaults, tree, "", Optional.empty());
    }

    private static <R extends Record> R bind(R byDefault, JsonNode tree, String path, Optional<Choice> choice) {
        Optional<Variants> variants = Variants.of(byDefault.getClass());
        R defaults = variants.map(all -> all.start(path, tree, byDefault)).orElse(byDefault);
        if (variants.isPresent() && tree.isTextual()) {
            return defaults;
        }
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
            if (name.equals(ConfigTree.WORD)) {
                if (choice.isPresent() || variants.isPresent()) {
                    continue;
                }
                throw new ConfigException((path.isEmpty() ? "the configuration" : path)
                        + " must hold keys and values, not " + object.get(name));
            }
            if (!known.contains(name)
                    && choice.isPresent()
                    && !choice.get().kindsWith(name).isEmpty()) {
                throw new ConfigException("unknown key " + join(path, name) + " for " + join(path, Choice.KIND) + "="
                        + Choice.kindOf(defaults) + "; it belongs to "
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
            Object before = read(components[i], defaults);
            JsonNode node = object.get(key);
            values[i] = node == null ? before : convert(join(path, key), node, components[i], before);
        }
        return construct(defaults, components, values, path);
    }

    private static Object convert(String key, JsonNode node, RecordComponent component, Object byDefault) {
        Optional<Choice> choice = Choice.of(component.getType());
        if (choice.isPresent()) {
            return one(key, node, choice.get(), Optional.of((Record) byDefault));
        }
        Optional<Choice> elements = Choice.ofElements(component);
        if (elements.isPresent()) {
            return list(key, node, elements.get(), (List<?>) byDefault);
        }
        return byDefault instanceof Record record
                ? bind(record, node, key, choice)
                : ConfigValue.of(key, node, component);
    }

    private static Record one(String key, JsonNode node, Choice choice, Optional<Record> byDefault) {
        Record start = choice.start(key, node, byDefault);
        return node.isObject() ? bind(start, node, key, Optional.of(choice)) : start;
    }

    /** A whole list, or an object whose keys are the indices of the changed elements. */
    private static List<Record> list(String key, JsonNode node, Choice choice, List<?> byDefault) {
        List<Record> list = new ArrayList<>();
        if (node instanceof ArrayNode array) {
            for (JsonNode element : array) {
                list.add(one(key + "[" + list.size() + "]", element, choice, Optional.empty()));
            }
            return List.copyOf(list);
        }
        if (!(node instanceof ObjectNode object) || !ConfigTree.isIndexed(object)) {
            throw new ConfigException(key + " must be a list of kinds, such as [" + String.join(", ", choice.kinds())
                    + "], or [] for none: " + node);
        }
        byDefault.forEach(element -> list.add((Record) element));
        object.properties().forEach(entry -> {
            int index = Integer.parseInt(entry.getKey());
            String place = key + "[" + index + "]";
            if (index > list.size()) {
                throw new ConfigException(
                        key + " has " + list.size() + " elements, so there is no " + place + "; write the whole list");
            }
            if (index == list.size()) {
                list.add(one(place, entry.getValue(), choice, Optional.empty()));
            } else {
                list.set(index, one(place, entry.getValue(), choice, Optional.of(list.get(index))));
            }
        });
        return List.copyOf(list);
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
            if (e.getCause() instanceof ConfigException contradiction) { // its keys are complete
                throw contradiction;
            }
            if (e.getCause() instanceof IllegalArgumentException refusal) {
                throw new ConfigException(join(path, String.valueOf(refusal.getMessage())), refusal);
            }
            throw new IllegalStateException(
                    "the configuration record " + defaults.getClass() + " failed", e.getCause());
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(defaults.getClass() + " is not a public configuration record", e);
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
                    branch.put(Choice.KIND, Choice.kindOf(nested));
                }
                branch.setAll(unbind(nested));
            } else if (value instanceof List<?> list) {
                ArrayNode array = tree.putArray(key);
                list.forEach(element -> {
                    if (element instanceof Record kind) {
                        array.addObject().put(Choice.KIND, Choice.kindOf(kind)).setAll(unbind(kind));
                    } else {
                        array.add(leaf(element));
                    }
                });
            } else if (value instanceof Map<?, ?> map) {
                ObjectNode object = tree.putObject(key);
                map.forEach((name, setting) -> object.put(String.valueOf(name), String.valueOf(setting)));
            } else {
                tree.set(key, leaf(value));
            }
        }
        return tree;
    }

    private static JsonNode leaf(Object value) {
        if (value instanceof Enum<?> choice) {
            return JsonNodeFactory.instance.textNode(choice.name().toLowerCase(Locale.ROOT));
        }
        return value instanceof Number || value instanceof Boolean
                ? JSON.valueToTree(value)
                : JsonNodeFactory.instance.textNode(String.valueOf(value));
    }

    /**
     * Every key below a record, with dots: {@code learner.learning_rate}. Maps and lists count as one key; of a choice,
     * the keys of the chosen kind.
     */
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
            throw new IllegalStateException(record.getClass() + " is not a public configuration record", e);
        }
    }

    static String join(String path, String key) {
        return path.isEmpty() ? key : path + "." + key;
    }
}
