package dev.millrace.api.catalogue;

import dev.millrace.api.plugin.Kind;
import java.io.File;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Every extension point of this process with its kinds, built in and from plug-ins. Immutable; the installed one is
 * process-wide.
 */
public final class Catalogue {
    /**
     * System property with paths to plug-ins, separated as in a class path, for a process that installs none itself.
     */
    public static final String PATH = "millrace.plugin.path";

    private static volatile @Nullable Catalogue installed;

    private final List<ExtensionPoint> extensionPoints;
    private final List<LoadedPlugin> plugins;
    private final List<Path> read;

    private Catalogue(PluginReader reader, List<Path> read) {
        this.extensionPoints = List.copyOf(reader.extensionPoints());
        this.plugins = List.copyOf(reader.plugins());
        this.read = read;
    }

    /**
     * Loads the plug-ins of the class path and of the paths: a jar, or a folder with a jar or a folder of jars for each
     * plug-in.
     *
     * @throws PluginException if a plug-in cannot be used; it names the jar
     */
    public static Catalogue of(List<Path> paths) {
        List<PluginPlaces.Place> places = PluginPlaces.of(paths);
        PluginReader reader = new PluginReader();
        reader.readClassPath();
        places.forEach(reader::read);
        return new Catalogue(
                reader, places.stream().map(PluginPlaces.Place::path).toList());
    }

    /**
     * Installs the plug-ins of the paths as the process's catalogue. Call it before a configuration is bound: earlier
     * ones keep their kinds. Repeating the same paths has no effect.
     *
     * @throws PluginException if a plug-in cannot be used; the catalogue is then unchanged
     */
    public static synchronized Catalogue install(List<Path> paths) {
        List<Path> wanted =
                PluginPlaces.of(paths).stream().map(PluginPlaces.Place::path).toList();
        Catalogue now = installed;
        if (now == null || !now.read.equals(wanted)) {
            now = of(paths);
            installed = now;
        }
        return now;
    }

    /**
     * Returns the process's catalogue; without {@link #install} that of the class path and {@link #PATH}.
     *
     * @throws PluginException on the first call, if a plug-in cannot be used
     */
    public static Catalogue current() {
        Catalogue now = installed;
        return now == null ? install(givenPaths()) : now;
    }

    public static List<Path> givenPaths() {
        return Arrays.stream(System.getProperty(PATH, "").split(File.pathSeparator))
                .filter(path -> !path.isEmpty())
                .map(Path::of)
                .toList();
    }

    /** Value of {@link #PATH} that gives another process the same plug-ins, apart from its class path. */
    public String path() {
        return read.stream().map(Path::toString).collect(Collectors.joining(File.pathSeparator));
    }

    /** Returns all extension points by name. */
    public List<ExtensionPoint> extensionPoints() {
        return extensionPoints.stream()
                .sorted(Comparator.comparing(ExtensionPoint::name))
                .toList();
    }

    /** Returns the extension point of an interface; empty if it is not one. */
    public Optional<ExtensionPoint> extensionPoint(Class<?> type) {
        return extensionPoints.stream().filter(point -> point.type() == type).findFirst();
    }

    /** Returns all plug-ins, built-in ones first, in the order found. */
    public List<LoadedPlugin> plugins() {
        return plugins.stream()
                .sorted(Comparator.comparing(LoadedPlugin::origin))
                .toList();
    }

    /** Returns all kinds of an extension point, built-in ones first. */
    public List<Kind> kinds(Class<?> extensionPoint) {
        return plugins().stream()
                .flatMap(plugin -> plugin.kinds().stream())
                .filter(kind -> kind.extensionPoint() == extensionPoint)
                .toList();
    }

    /** Returns a record's name in a configuration; empty if it is not a kind. */
    public Optional<String> nameOf(Class<?> record) {
        return all().filter(kind -> kind.type() == record).map(Kind::name).findFirst();
    }

    private Stream<Kind> all() {
        return plugins.stream().flatMap(plugin -> plugin.kinds().stream());
    }

    @Override
    public String toString() {
        return Objects.toString(plugins.stream().map(LoadedPlugin::name).toList());
    }
}
