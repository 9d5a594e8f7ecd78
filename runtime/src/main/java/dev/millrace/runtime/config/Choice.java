package dev.millrace.runtime.config;

import com.fasterxml.jackson.databind.JsonNode;
import dev.millrace.topology.settings.CanonicalValues;
import java.lang.reflect.InvocationTargetException;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;

/**
 * A configuration component that is one of several record types: a sealed interface, whose permitted records are the kinds.
 *
 * <p>In a tree it is an object with the key {@code kind} beside the keys of that record, or the kind alone as text. A kind is
 * the record's name as a key, without an ending {@code Config}: {@code DecoupledPpoConfig} is {@code decoupled_ppo}. What the
 * tree does not name keeps the value of the default, or, where another kind is chosen, of that record's static
 * {@code defaults()}.
 */
public final class Choice {
    /** The key that names the kind. */
    public static final String KIND = "kind";

    private final Class<?> type;

    private Choice(Class<?> type) {
        this.type = type;
    }

    /** The choice that a component's type is; empty if it is none. */
    public static Optional<Choice> of(Class<?> type) {
        return type.isInterface() && type.isSealed() ? Optional.of(new Choice(type)) : Optional.empty();
    }

    /** The kind of a value. */
    public static String kindOf(Object value) {
        return nameOf(value.getClass());
    }

    private static String nameOf(Class<?> kind) {
        return CanonicalValues.kindOf(kind);
    }

    /** All kinds, in the order in which the interface permits them. */
    public List<String> kinds() {
        return Arrays.stream(type.getPermittedSubclasses()).map(Choice::nameOf).toList();
    }

    /** The defaults of every kind, in the order in which the interface permits them. */
    public List<Record> defaults() {
        return Arrays.stream(type.getPermittedSubclasses())
                .map(Choice::defaultsOf)
                .toList();
    }

    /**
     * The defaults over which a node's other keys are put: those given, unless it names another kind.
     *
     * @throws ConfigException if it names no kind
     */
    Record start(String key, JsonNode node, Record byDefault) {
        JsonNode kind = node.isObject() ? node.get(KIND) : node;
        if (kind == null) {
            return byDefault;
        }
        String name = kind.asText();
        if (!kind.isTextual() || !kinds().contains(name)) {
            throw new ConfigException((node.isObject() ? key + "." + KIND : key) + " must be one of "
                    + String.join(", ", kinds()) + ": " + (kind.isTextual() ? "'" + name + "'" : kind.toString())
                    + NearestKey.of(name, kinds())
                            .map(k -> "; did you mean " + k + "?")
                            .orElse(""));
        }
        return name.equals(kindOf(byDefault)) ? byDefault : defaults().get(kinds().indexOf(name));
    }

    /** Which kinds have a key that the chosen one has not. */
    List<String> kindsWith(String key) {
        return defaults().stream()
                .filter(kind -> Arrays.stream(kind.getClass().getRecordComponents())
                        .anyMatch(component ->
                                ConfigBinder.keyOf(component.getName()).equals(key)))
                .map(Choice::kindOf)
                .toList();
    }

    private static Record defaultsOf(Class<?> kind) {
        try {
            return (Record)
                    (kind.getRecordComponents().length == 0
                            ? kind.getDeclaredConstructor().newInstance()
                            : kind.getMethod("defaults").invoke(null));
        } catch (InvocationTargetException e) {
            throw new IllegalStateException("the defaults of " + kind + " are refused by itself", e.getCause());
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(
                    kind + " needs a public static defaults(), as every kind with settings does", e);
        }
    }
}
