package dev.millrace.api.catalogue;

import dev.millrace.api.plugin.Kind;
import java.util.List;

/**
 * A plug-in in the catalogue.
 *
 * @param name its own
 * @param origin where it is from
 * @param place the jar or folder; for others, {@code origin} in words
 * @param version the jar's {@code Implementation-Version}; empty if missing
 * @param kinds its kinds
 */
public record LoadedPlugin(String name, Origin origin, String place, String version, List<Kind> kinds) {

    /** Where a plug-in is from. */
    public enum Origin {
        /** Millrace itself. */
        BUILT_IN,
        /** The program that embeds Millrace. */
        CLASS_PATH,
        /** A separate jar, or a folder of jars. */
        JAR
    }

    public LoadedPlugin {
        kinds = List.copyOf(kinds);
    }
}
