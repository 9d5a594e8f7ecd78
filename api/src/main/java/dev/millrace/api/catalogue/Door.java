package dev.millrace.api.catalogue;

import java.util.Objects;

/**
 * An extension point.
 *
 * @param name for users, such as {@code mask}
 * @param type interface that a kind implements
 * @param key where the configuration chooses, such as {@code algorithm.masks}
 * @param meaning one sentence: what its kinds do
 */
public record Door(String name, Class<?> type, String key, String meaning) {

    public Door {
        Objects.requireNonNull(name, "name");
        Objects.requireNonNull(key, "key");
        Objects.requireNonNull(meaning, "meaning");
        if (!type.isInterface() || type.isSealed()) {
            throw new IllegalArgumentException(
                    "the door " + name + " must be an interface that others may implement: " + type);
        }
    }
}
