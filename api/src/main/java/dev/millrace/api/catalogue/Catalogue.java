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

/** Every door of this process with its kinds, built in and from plug-ins. Immutable; what is installed is the process's. */
public final class Catalogue {
    /** System property with paths to plug-ins, as many as a class path may have, for a process that installs none itself. */
    public static final String PATH = "millrace.plugin.path";

    private static volatile @Nullable Catalogue installed;

    private final List<Door> doors;
    private final List<LoadedPlugin> plugins;
    private final List<Path> read;

    private Catalogue(PluginReader reader, List<Path> read) {
        this.doors = List.copyOf(reader.doors());
        this.plugins = List.copyOf(reader.plugins());
        this.read = read;
    }

    /**
     * What is on the class path, and what the paths hold: a jar, or a folder with a jar or a folder of jars for each plug-in.
     *
     * @throws PluginException if a path holds something that cannot be used; it names the jar
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
     * Makes what the paths hold the process's catalogue. Do it before a configuration is bound: one that was bound before keeps
     * the kinds it was bound with. The same places again change nothing.
     *
     * @throws PluginException if a path holds something that cannot be used; then the catalogue stays as it was
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
     * The process's; without {@link #install} what is on the class path and in {@link #PATH}.
     *
     * @throws PluginException if it is asked for the first time and something there cannot be used
     */
    public static Catalogue current() {
        Catalogue now = installed;
        return now == null ? install(givenPaths()) : now;
    }

    /** The paths in {@link #PATH}. */
    public static List<Path> givenPaths() {
        return Arrays.stream(System.getProperty(PATH, "").split(File.pathSeparator))
                .filter(path -> !path.isEmpty())
                .map(Path::of)
                .toList();
    }

    /** What {@link #PATH} must be for another process to have the same plug-ins, apart from those of its class path. */
    public String path() {
        return read.stream().map(Path::toString).collect(Collectors.joining(File.pathSeparator));
    }

    /** All doors, by name. */
    public List<Door> doors() {
        return doors.stream().sorted(Comparator.comparing(Door::name)).toList();
    }

    /** The door that an interface is; empty if it is none. */
    public Optional<Door> door(Class<?> type) {
        return doors.stream().filter(door -> door.type() == type).findFirst();
    }

    /** All plug-ins, the built-in ones first, each in the order it was found in. */
    public List<LoadedPlugin> plugins() {
        return plugins.stream()
                .sorted(Comparator.comparing(LoadedPlugin::origin))
                .toList();
    }

    /** All kinds of a door, those of built-ins first. */
    public List<Kind> kinds(Class<?> door) {
        return plugins().stream()
                .flatMap(plugin -> plugin.kinds().stream())
                .filter(kind -> kind.door() == door)
                .toList();
    }

    /** The kind of a door that may be chosen by a name. */
    public Optional<Kind> kind(Class<?> door, String name) {
        return kinds(door).stream().filter(kind -> kind.isCalled(name)).findFirst();
    }

    /** What a record is called in a configuration; empty if it came through no door. */
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
