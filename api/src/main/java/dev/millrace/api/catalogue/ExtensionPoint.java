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
public record ExtensionPoint(String name, Class<?> type, String key, String meaning) {

    public ExtensionPoint {
        Objects.requireNonNull(name, "name");
        Objects.requireNonNull(key, "key");
        Objects.requireNonNull(meaning, "meaning");
        if (!type.isInterface() || type.isSealed()) {
            throw new IllegalArgumentException(
                    "the extension point " + name + " must be a non-sealed interface: " + type);
        }
    }
}
