package dev.millrace.runtime.pipeline;

import dev.millrace.api.catalogue.Catalogue;
import dev.millrace.api.catalogue.LoadedPlugin;
import dev.millrace.api.catalogue.PluginException;
import dev.millrace.api.plugin.Kind;
import dev.millrace.runtime.config.ConfigBinder;
import java.nio.file.Path;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Loads plug-ins into the process; a program that embeds Millrace calls this before it resolves a configuration. */
public final class Plugins {
    private Plugins() {}

    /**
     * Loads the plug-ins of the paths and of the class path.
     *
     * @param paths jars, and folders with a jar, or a folder of jars, for each plug-in
     * @throws PluginException if something there cannot be used; it names the jar and says what to do
     */
    public static Catalogue install(List<Path> paths) {
        Catalogue catalogue = Catalogue.install(paths);
        for (LoadedPlugin plugin : catalogue.plugins()) {
            if (plugin.origin() != LoadedPlugin.Origin.BUILT_IN) {
                plugin.kinds().forEach(kind -> requireConfigurable(plugin, kind));
            }
        }
        return catalogue;
    }

    /** A record that does not round-trip through its keys would be misconfigured. */
    static void requireConfigurable(LoadedPlugin plugin, Kind kind) {
        try {
            if (ConfigBinder.bind(kind.defaults(), ConfigBinder.unbind(kind.defaults()))
                    .equals(kind.defaults())) {
                return;
            }
        } catch (RuntimeException e) {
            throw refused(plugin, kind, ": " + e.getMessage(), e);
        }
        throw refused(plugin, kind, ": its defaults do not survive a round trip through keys and values", null);
    }

    private static PluginException refused(LoadedPlugin plugin, Kind kind, String why, @Nullable Throwable cause) {
        return new PluginException(
                "the plug-in " + plugin.place() + " offers " + kind.name() + ", which cannot be configured" + why
                        + "; its components may be numbers, booleans, strings, enums, lists of strings, integers or"
                        + " kinds, and records of these",
                cause);
    }
}
