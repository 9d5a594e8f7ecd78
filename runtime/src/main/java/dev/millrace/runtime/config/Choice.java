package dev.millrace.runtime.config;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.api.catalogue.Catalogue;
import dev.millrace.api.plugin.Kind;
import dev.millrace.topology.CanonicalValues;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.RecordComponent;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Optional;

/**
 * A configuration component that is one of several record types: a sealed interface, whose permitted records are the
 * kinds, or an extension point, whose kinds are those of the {@link Catalogue}. In a list of such components each
 * element is a choice.
 *
 * <p>In a tree it is an object with the key {@code kind} and the keys of that record, or the kind alone as text. A kind
 * of an extension point has the name it was registered under. A permitted record's name is its class name as a key,
 * without the suffix {@code Config}: {@code DecoupledPpoConfig} is {@code decoupled_ppo}. Keys that the tree leaves out
 * keep the default's value or, where another kind is chosen, that kind's defaults: for a permitted record its static
 * {@code defaults()}.
 */
public final class Choice {
    public static final String KIND = "kind";

    private final List<Kind> kinds;
    private final boolean open;

    private Choice(List<Kind> kinds, boolean open) {
        this.kinds = kinds;
        this.open = open;
    }

    /** Returns the choice for a component's type; empty if the type is not a choice. */
    public static Optional<Choice> of(Class<?> type) {
        if (Catalogue.current().extensionPoint(type).isPresent()) {
            return Optional.of(new Choice(Catalogue.current().kinds(type), true));
        }
        return type.isInterface() && type.isSealed()
                ? Optional.of(new Choice(
                        Arrays.stream(type.getPermittedSubclasses())
                                .map(kind -> Kind.of(
                                        type, CanonicalValues.kindOf(kind), defaultsOf(kind), kind.getSimpleName()))
                                .toList(),
                        false))
                : Optional.empty();
    }

    /** Returns the choice for the elements of a list component; empty if it is not a list of choices. */
    public static Optional<Choice> ofElements(RecordComponent component) {
        return component.getType() == List.class
                        && component.getGenericType() instanceof ParameterizedType list
                        && list.getActualTypeArguments()[0] instanceof Class<?> element
                ? of(element)
                : Optional.empty();
    }

    public static String kindOf(Object value) {
        return CanonicalValues.kindOf(value.getClass());
    }

    /** All kinds by name, in the order in which the interface permits them or the catalogue has them. */
    public List<String> kinds() {
        return kinds.stream().map(Kind::name).toList();
    }

    public List<Record> defaults() {
        return kinds.stream().map(Kind::defaults).toList();
    }

    /**
     * Returns the defaults that a node's other keys override: those given, unless the node names another kind.
     *
     * @throws ConfigException if it names no kind
     */
    Record start(String key, JsonNode node, Optional<Record> byDefault) {
        JsonNode kind = node instanceof ObjectNode object
                ? Optional.ofNullable(object.get(KIND)).orElse(object.get(ConfigTree.WORD))
                : node;
        if (kind == null) {
            return byDefault.orElseThrow(
                    () -> new ConfigException(key + " needs the key " + KIND + ", one of " + known() + ": " + node));
        }
        String name = kind.asText();
        Optional<Kind> chosen = kind.isTextual() ? called(name) : Optional.empty();
        Kind found = chosen.orElseThrow(() ->
                new ConfigException((node.isObject() ? key + "." + KIND : key) + " must be one of " + known() + ": "
                        + (kind.isTextual() ? "'" + name + "'" : kind.toString())
                        + NearestKey.of(name, kinds())
                                .map(k -> "; did you mean " + k + "?")
                                .orElse("")));
        return byDefault.filter(value -> value.getClass() == found.type()).orElse(found.defaults());
    }

    private String known() {
        if (kinds.isEmpty()) {
            return "the kinds of a plug-in (--plugin-path), since none is built in";
        }
        return String.join(", ", kinds()) + (open ? ", or a kind of a plug-in (--plugin-path)" : "");
    }

    private Optional<Kind> called(String name) {
        String key = name.toLowerCase(Locale.ROOT).replace('-', '_');
        return kinds.stream().filter(kind -> kind.isCalled(key)).findFirst();
    }

    /** Kinds that have a key which the chosen kind lacks. */
    List<String> kindsWith(String key) {
        return kinds.stream()
                .filter(kind -> Arrays.stream(kind.type().getRecordComponents())
                        .anyMatch(component ->
                                ConfigBinder.keyOf(component.getName()).equals(key)))
                .map(Kind::name)
                .toList();
    }

    private static Record defaultsOf(Class<?> kind) {
        try {
            return (Record)
                    (kind.getRecordComponents().length == 0
                            ? kind.getDeclaredConstructor().newInstance()
                            : kind.getMethod("defaults").invoke(null));
        } catch (InvocationTargetException e) {
            throw new IllegalStateException("the defaults of " + kind + " fail its own validation", e.getCause());
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(
                    kind + " needs a public static defaults(), as every kind with settings does", e);
        }
    }
}
