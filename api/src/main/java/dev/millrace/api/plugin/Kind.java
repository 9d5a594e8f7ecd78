package dev.millrace.api.plugin;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * One choice in a configuration: a record that implements an extension point's interface; its components are its
 * settings.
 *
 * <p>A component {@code maxTokens} is the key {@code max_tokens}. It may be an int, long, double, boolean, String, an enum, a list of
 * strings, of longs or of kinds, a map from string to string, another record, or another choice. The record's
 * constructor refuses invalid values with an {@link IllegalArgumentException} whose message begins with the key.
 *
 * @param extensionPoint interface of the extension point, which the record implements
 * @param name unique for its extension point: lower-case letters, digits and {@code _}
 * @param aliases other names
 * @param defaults its default settings
 * @param meaning one sentence for the user
 */
public record Kind(Class<?> extensionPoint, String name, List<String> aliases, Record defaults, String meaning) {
    private static final Pattern NAME = Pattern.compile("[a-z][a-z0-9_]*");

    public Kind {
        Objects.requireNonNull(extensionPoint, "extensionPoint");
        Objects.requireNonNull(defaults, "defaults");
        aliases = List.copyOf(aliases);
        Stream.concat(Stream.of(name), aliases.stream())
                .filter(each -> !NAME.matcher(each).matches())
                .findFirst()
                .ifPresent(odd -> {
                    throw new IllegalArgumentException(
                            "a kind's name begins with a lower-case letter, and lower-case letters,"
                                    + " digits and '_' follow: '" + odd + "'");
                });
        if (!extensionPoint.isInstance(defaults)) {
            throw new IllegalArgumentException("the kind " + name + " must implement " + extensionPoint.getName()
                    + "; it is a " + defaults.getClass().getName());
        }
        if (meaning.isBlank()) {
            throw new IllegalArgumentException("the kind " + name + " must say in a sentence what it is");
        }
    }

    /** A kind with one name. */
    public static Kind of(Class<?> extensionPoint, String name, Record defaults, String meaning) {
        return new Kind(extensionPoint, name, List.of(), defaults, meaning);
    }

    public Kind also(String... names) {
        List<String> all = new ArrayList<>(aliases);
        all.addAll(Arrays.asList(names));
        return new Kind(extensionPoint, name, all, defaults, meaning);
    }

    public Class<? extends Record> type() {
        return defaults.getClass();
    }

    public boolean isCalled(String other) {
        return name.equals(other) || aliases.contains(other);
    }
}
