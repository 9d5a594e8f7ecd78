package dev.millrace.runtime.config;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.log.SecretText;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.RecordComponent;
import java.lang.reflect.Type;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;

/**
 * A configuration leaf: a number, a boolean, a text, an enum constant, a list of texts or of integers, or a map from
 * text to text.
 */
final class ConfigValue {
    private static final Pattern REFERENCE = Pattern.compile("\\$\\{\\w+:[^}]*}");
    private static final Set<String> MAY_BE_SECRET =
            Set.of("kafka", "run.schema_registry_url", "metrics.otlp.url", "metrics.otlp.headers", "http.tls.password");

    private ConfigValue() {}

    /**
     * Converts a node to the type of a component.
     *
     * @throws ConfigException if it is of another type, in a sentence with the key
     */
    static Object of(String key, JsonNode node, RecordComponent component) {
        if (component.getType() == Map.class && argument(component, 1) == SecretText.class) {
            return toSettings(key, node);
        }
        return component.getType() == List.class && argument(component, 0) == Long.class
                ? toNumbers(key, node)
                : of(key, node, component.getType());
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private static Object of(String key, JsonNode node, Class<?> type) {
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
            if (!node.isValueNode()) {
                throw wrong(key, "text", node);
            }
            if (REFERENCE.matcher(node.asText()).find()) {
                throw new ConfigException(key + " accepts no reference: " + show(key, node)
                        + "; settings under kafka., run.schema_registry_url, metrics.otlp and http.tls.password do");
            }
            return node.asText();
        }
        if (type == SecretText.class) {
            if (node.isValueNode()) {
                return SecretText.ofSetting(key, node.asText());
            }
            throw wrong(key, "text", node);
        }
        if (type.isEnum()) {
            List<String> names = Arrays.stream(type.getEnumConstants())
                    .map(c -> ((Enum<?>) c).name().toLowerCase(Locale.ROOT))
                    .toList();
            String name = node.asText().toLowerCase(Locale.ROOT).replace('-', '_'); // verl writes token-mean
            if (!node.isValueNode() || !names.contains(name)) {
                throw new ConfigException(key + " must be one of " + String.join(", ", names) + ": " + show(key, node)
                        + NearestKey.of(name, names)
                                .map(k -> "; did you mean " + k + "?")
                                .orElse(""));
            }
            return Enum.valueOf((Class<Enum>) type, name.toUpperCase(Locale.ROOT));
        }
        if (type == List.class) {
            return toStrings(key, node);
        }
        if (type == Map.class) {
            return toMap(key, node);
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
                throw new ConfigException(key + " must be a number: " + show(key, node), e);
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

    private static Type argument(RecordComponent component, int index) {
        return ((ParameterizedType) component.getGenericType()).getActualTypeArguments()[index];
    }

    private static List<Long> toNumbers(String key, JsonNode node) {
        if (!(node instanceof ArrayNode array)) {
            throw wrong(key, "a list of whole numbers", node);
        }
        List<Long> numbers = new ArrayList<>();
        array.forEach(element -> numbers.add((Long) of(key, element, long.class)));
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

    private static Map<String, SecretText> toSettings(String key, JsonNode node) {
        Map<String, SecretText> settings = new LinkedHashMap<>();
        toMap(key, node)
                .forEach((name, text) -> settings.put(
                        name, key.equals("kafka") ? SecretText.ofSetting(name, text) : SecretText.ofSecret(text)));
        return settings;
    }

    /** Client settings may be written with dots or nested; both mean the same name. */
    private static void flatten(String prefix, ObjectNode object, Map<String, String> into) {
        object.properties().forEach(entry -> {
            if (entry.getValue() instanceof ObjectNode nested) {
                flatten(ConfigBinder.join(prefix, entry.getKey()), nested, into);
            } else {
                into.put(
                        ConfigBinder.join(prefix, entry.getKey()),
                        entry.getValue().asText());
            }
        });
    }

    private static ConfigException wrong(String key, String wanted, JsonNode node) {
        return new ConfigException(key + " must be " + wanted + ": " + show(key, node));
    }

    /** Formats a wrong value for a message, unless it may be a misplaced secret. */
    private static String show(String key, JsonNode node) {
        if (MAY_BE_SECRET.contains(key)) {
            return SecretText.HIDDEN;
        }
        return node.isTextual() ? "'" + node.textValue() + "'" : node.toString();
    }
}
