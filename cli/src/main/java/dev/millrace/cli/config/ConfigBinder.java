package dev.millrace.cli.config;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.RecordComponent;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.LinkedHashMap;
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
    private ConfigBinder() {
    }

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
            throw new ConfigException((path.isEmpty() ? "the configuration" : path) + " must hold keys and values, not " + tree);
        }
        RecordComponent[] components = defaults.getClass().getRecordComponents();
        List<String> known = Arrays.stream(components).map(c -> keyOf(c.getName())).toList();
        for (Iterator<String> names = object.fieldNames(); names.hasNext();) {
            String name = names.next();
            if (choice.isPresent() && name.equals(Choice.KIND)) {
                continue;
            }
            if (!known.contains(name) && choice.isPresent() && !choice.get().kindsWith(name).isEmpty()) {
                throw new ConfigException("unknown key " + join(path, name) + " for " + join(path, Choice.KIND) + "="
                    + kindOf(defaults) + "; it belongs to " + String.join(", ", choice.get().kindsWith(name)));
            }
            if (!known.contains(name)) {
                throw new ConfigException("unknown key " + join(path, name)
                    + NearestKey.of(name, known).map(k -> "; did you mean " + join(path, k) + "?")
                        .orElse("; known here: " + String.join(", ", known)));
            }
        }
        Object[] values = new Object[components.length];
        for (int i = 0; i < components.length; i++) {
            String key = keyOf(components[i].getName());
            Object byDefault = read(components[i], defaults);
            JsonNode node = object.get(key);
            values[i] = node == null ? byDefault : isOfNumbers(components[i]) ? toNumbers(join(path, key), node)
                : convert(join(path, key), node, components[i].getType(), byDefault);
        }
        return construct(defaults, components, values, path);
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private static Object convert(String key, JsonNode node, Class<?> type, Object byDefault) {
        if (type == int.class) {
            if (isWhole(node) && node.canConvertToInt()) {
                return (int) node.asDouble();
            }
            throw wrong(key, "a whole number", node);
        }
        if (type == long.class) {
            if (node.isIntegralNumber() && node.canConvertToLong()) {
                return node.longValue();
            }
            if (isWhole(node) && Math.abs(node.asDouble()) < 0x1p53) {
                return (long) node.asDouble();
            }
            throw wrong(key, "a whole number", node);
        }
        if (type == double.class) {
            return toDouble(key, node);
        }
        if (type == boolean.class) {
            if (node.isBoolean()) {
                return node.booleanValue();
            }
            throw wrong(key, "true or false", node);
        }
        if (type == String.class) {
            if (node.isValueNode()) {
                return node.asText();
            }
            throw wrong(key, "text", node);
        }
        if (type.isEnum()) {
            List<String> names = Arrays.stream(type.getEnumConstants()).map(c -> ((Enum<?>) c).name().toLowerCase(Locale.ROOT)).toList();
            String name = node.asText().toLowerCase(Locale.ROOT);
            if (!node.isValueNode() || !names.contains(name)) {
                throw new ConfigException(key + " must be one of " + String.join(", ", names) + ": " + show(node)
                    + NearestKey.of(name, names).map(k -> "; did you mean " + k + "?").orElse(""));
            }
            return Enum.valueOf((Class<Enum>) type, name.toUpperCase(Locale.ROOT));
        }
        if (type == List.class) {
            return toStrings(key, node);
        }
        if (type == Map.class) {
            return toMap(key, node);
        }
        Optional<Choice> choice = Choice.of(type);
        if (choice.isPresent()) {
            Record start = choice.get().start(key, node, (Record) byDefault);
            return node.isObject() ? bind(start, node, key, choice) : start;
        }
        if (byDefault instanceof Record record) {
            return bind(record, node, key, choice);
        }
        throw new IllegalStateException(key + " has a type that no configuration record may use: " + type);
    }

    private static boolean isWhole(JsonNode node) {
        return node.isNumber() && node.asDouble() == Math.rint(node.asDouble());
    }

    private static double toDouble(String key, JsonNode node) {
        if (node.isNumber()) {
            return node.doubleValue();
        }
        if (node.isTextual()) { // YAML 1.1 reads 1e-3, which has no dot, as text
            try {
                return Double.parseDouble(node.textValue());
            } catch (NumberFormatException e) {
                throw new ConfigException(key + " must be a number: " + show(node), e);
            }
        }
        throw wrong(key, "a number", node);
    }

    private static List<String> toStrings(String key, JsonNode node) {
        if (!(node instanceof ArrayNode array)) {
            throw wrong(key, "a list", node);
        }
        List<String> strings = new ArrayList<>();
        array.forEach(element -> strings.add(element.asText()));
        return List.copyOf(strings);
    }

    private static boolean isOfNumbers(RecordComponent component) {
        return component.getType() == List.class && component.getGenericType() instanceof ParameterizedType list
            && list.getActualTypeArguments()[0] == Long.class;
    }

    private static List<Long> toNumbers(String key, JsonNode node) {
        if (!(node instanceof ArrayNode array)) {
            throw wrong(key, "a list of whole numbers", node);
        }
        List<Long> numbers = new ArrayList<>();
        array.forEach(element -> numbers.add((Long) convert(key, element, long.class, null)));
        return List.copyOf(numbers);
    }

    private static Map<String, String> toMap(String key, JsonNode node) {
        if (!(node instanceof ObjectNode object)) {
            throw wrong(key, "keys and values", node);
        }
        Map<String, String> map = new LinkedHashMap<>();
        flatten("", object, map);
        return map;
    }

    /** Client settings may be written with dots or nested; both mean the same name. */
    private static void flatten(String prefix, ObjectNode object, Map<String, String> into) {
        object.properties().forEach(entry -> {
            if (entry.getValue() instanceof ObjectNode nested) {
                flatten(join(prefix, entry.getKey()), nested, into);
            } else {
                into.put(join(prefix, entry.getKey()), entry.getValue().asText());
            }
        });
    }

    private static <R extends Record> R construct(R defaults, RecordComponent[] components, Object[] values, String path) {
        try {
            Class<?>[] types = Arrays.stream(components).map(RecordComponent::getType).toArray(Class<?>[]::new);
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
            throw new IllegalStateException("the configuration record " + defaults.getClass() + " failed", e.getCause());
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
    static String keyOf(String component) {
        return component.replaceAll("([a-z0-9])([A-Z])", "$1_$2").toLowerCase(Locale.ROOT);
    }

    private static Object read(RecordComponent component, Record record) {
        try {
            return component.getAccessor().invoke(record);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(record.getClass() + " is no public configuration record", e);
        }
    }

    private static ConfigException wrong(String key, String wanted, JsonNode node) {
        return new ConfigException(key + " must be " + wanted + ": " + show(node));
    }

    private static String show(JsonNode node) {
        return node.isTextual() ? "'" + node.textValue() + "'" : node.toString();
    }

    private static String join(String path, String key) {
        return path.isEmpty() ? key : path + "." + key;
    }
}
