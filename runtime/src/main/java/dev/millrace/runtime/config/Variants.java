package dev.millrace.runtime.config;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.corrections.algorithm.NamedAlgorithms;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.Arrays;
import java.util.Optional;

/**
 * A configuration record that has named variants: a component {@code variant}, and a public static {@code variant(String)} that gives
 * the whole record of a name or refuses it.
 *
 * <p>In a tree it is an object whose key {@code variant} names the variant that its other keys override, or a variant's
 * name alone as text. Without either the other keys override the default.
 */
final class Variants {
    /** The key that names the variant, and the method that gives it. */
    static final String VARIANT = "variant";

    private final Method named;

    private Variants(Method named) {
        this.named = named;
    }

    /** Those of a record type; empty if it has none. */
    static Optional<Variants> of(Class<?> record) {
        boolean has = Arrays.stream(record.getRecordComponents())
                .anyMatch(component -> component.getName().equals(VARIANT) && component.getType() == String.class);
        return has
                ? Arrays.stream(record.getMethods())
                        .filter(method -> method.getName().equals(VARIANT)
                                && Modifier.isStatic(method.getModifiers())
                                && method.getParameterCount() == 1)
                        .findFirst()
                        .map(Variants::new)
                : Optional.empty();
    }

    /**
     * Returns the record that a node's other keys override.
     *
     * @throws ConfigException if there is no variant of the name
     */
    <R extends Record> R start(String key, JsonNode node, R byDefault) {
        JsonNode name = node instanceof ObjectNode object
                ? Optional.ofNullable(object.get(VARIANT)).orElse(object.get(ConfigTree.WORD))
                : node;
        if (name == null) {
            return byDefault;
        }
        if (!name.isTextual()) {
            throw new ConfigException(ConfigBinder.join(key, VARIANT) + " must be the name of a variant: " + name);
        }
        try {
            @SuppressWarnings("unchecked")
            R variant = (R) named.invoke(null, name.textValue());
            return variant;
        } catch (InvocationTargetException e) {
            if (e.getCause() instanceof IllegalArgumentException refusal) {
                throw new ConfigException(
                        ConfigBinder.join(key, String.valueOf(refusal.getMessage())) + suggestion(name.textValue()),
                        refusal);
            }
            throw new IllegalStateException("the variant " + name + " of " + key + " failed", e.getCause());
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(named + " is not public", e);
        }
    }

    private String suggestion(String name) {
        return named.getDeclaringClass() != Algorithm.class
                ? ""
                : NearestKey.of(name, NamedAlgorithms.all().keySet())
                        .map(known -> "; did you mean " + known + "?")
                        .orElse("");
    }
}
