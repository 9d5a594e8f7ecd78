package dev.millrace.api.catalogue;

import dev.millrace.api.plugin.Kind;
import java.util.List;

/**
 * A plug-in in the catalogue.
 *
 * @param name its own
 * @param origin where it is from
 * @param place the jar or folder it was read from; for others, what {@code origin} says in words
 * @param version of the jar, as its manifest has it in {@code Implementation-Version}; empty if it says none
 * @param kinds what it offers
 */
public record LoadedPlugin(String name, Origin origin, String place, String version, List<Kind> kinds) {

    /** Where a plug-in is from. */
    public enum Origin {
        /** Millrace itself. */
        BUILT_IN,
        /** The program that Millrace runs in. */
        CLASS_PATH,
        /** A jar of its own, or a folder of jars. */
        JAR
    }

    public LoadedPlugin {
        kinds = List.copyOf(kinds);
    }
}
