package dev.millrace.api.catalogue;

import dev.millrace.api.catalogue.LoadedPlugin.Origin;
import dev.millrace.api.plugin.Kind;
import dev.millrace.api.plugin.Plugin;
import dev.millrace.api.plugin.PluginApi;
import java.io.IOException;
import java.lang.reflect.Modifier;
import java.net.MalformedURLException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Optional;
import java.util.ServiceConfigurationError;
import java.util.ServiceLoader;
import java.util.jar.Attributes;
import java.util.jar.JarFile;
import java.util.regex.Pattern;

/** Finds plug-ins by their service files, and refuses unusable ones with a message that names the jar. */
final class PluginReader {
    private static final Pattern NAME = Pattern.compile("[a-z][a-z0-9_-]*");
    private static final String SERVICE = "META-INF/services/" + Plugin.class.getName();

    private final List<ExtensionPoint> points = new ArrayList<>();
    private final List<LoadedPlugin> plugins = new ArrayList<>();

    List<ExtensionPoint> extensionPoints() {
        return points;
    }

    List<LoadedPlugin> plugins() {
        return plugins;
    }

    /** The program's own plug-ins; built-ins first, as they declare the extension points. */
    void readClassPath() {
        List<Plugin> found = found(Plugin.class.getClassLoader(), "the class path");
        for (Plugin plugin : found) {
            if (plugin instanceof BuiltIn builtIn) {
                points.addAll(builtIn.extensionPoints());
            }
        }
        for (Plugin plugin : found) {
            boolean ours = plugin instanceof BuiltIn;
            add(
                    plugin,
                    ours ? Origin.BUILT_IN : Origin.CLASS_PATH,
                    ours ? "built in" : "class path",
                    Optional.ofNullable(plugin.getClass().getPackage().getImplementationVersion())
                            .orElse(""));
        }
    }

    /** Plug-ins of one path; their classes see the program's but not those of other paths. */
    void read(PluginPlaces.Place place) {
        String where = "the plug-in " + place.path();
        String version = place.jars().stream()
                .map(jar -> version(where, jar))
                .reduce("", (one, other) -> one.isEmpty() ? other : one);
        URL[] urls = place.jars().stream().map(PluginReader::url).toArray(URL[]::new);
        // stays open: classes are loaded from it until the process ends
        URLClassLoader loader = new URLClassLoader("plugin " + place.path(), urls, Plugin.class.getClassLoader());
        List<Plugin> found = found(loader, where).stream()
                .filter(plugin -> plugin.getClass().getClassLoader() == loader)
                .toList();
        if (found.isEmpty()) {
            throw new PluginException(where + " offers nothing: it has no file " + SERVICE
                    + " that names a class of its own; add it, or take the jar away");
        }
        for (Plugin plugin : found) {
            if (plugin instanceof BuiltIn) {
                throw new PluginException(where + " declares extension points ("
                        + plugin.getClass().getName() + "), which only Millrace does; implement "
                        + Plugin.class.getName() + " alone");
            }
            add(plugin, Origin.JAR, place.path().toString(), version);
        }
    }

    private static List<Plugin> found(ClassLoader loader, String where) {
        List<Plugin> found = new ArrayList<>();
        try {
            for (Iterator<Plugin> each =
                            ServiceLoader.load(Plugin.class, loader).iterator();
                    each.hasNext(); ) {
                found.add(each.next());
            }
        } catch (ServiceConfigurationError | LinkageError e) {
            if (e instanceof LinkageError) {
                throw otherRelease(where, e);
            }
            if (e.getCause() instanceof LinkageError cause) {
                throw otherRelease(where, cause);
            }
            throw new PluginException(
                    where + " cannot be loaded: " + firstLine(e) + cause(e) + "; the file " + SERVICE
                            + " names a public class with a public constructor without parameters",
                    e);
        }
        return found;
    }

    private void add(Plugin plugin, Origin origin, String place, String version) {
        String where = origin == Origin.JAR
                ? "the plug-in " + place
                : "the plug-in " + plugin.getClass().getName();
        try {
            if (plugin.apiVersion() != PluginApi.VERSION) {
                throw new PluginException(where + " was built against version " + plugin.apiVersion()
                        + " of the plug-in interface, and this is version " + PluginApi.VERSION
                        + "; build it against the millrace-api of this release, or take the jar away");
            }
            String name = plugin.name();
            if (!NAME.matcher(name).matches()) {
                throw new PluginException(
                        where + " is called '" + name + "'; a plug-in's name begins with a lower-case letter,"
                                + " and lower-case letters, digits, '-' and '_' follow");
            }
            for (LoadedPlugin other : plugins) {
                if (other.name().equals(name)) {
                    throw new PluginException("two plug-ins are called " + name + ": " + other.place() + " and " + place
                            + "; take one of them away");
                }
            }
            List<Kind> kinds = plugin.kinds();
            if (kinds.isEmpty() && origin != Origin.BUILT_IN) {
                throw new PluginException(where + " (" + name + ") offers no kind; take the jar away");
            }
            List<Kind> own = new ArrayList<>();
            for (Kind kind : kinds) {
                requireUsable(where, kind);
                for (Kind other : own) {
                    requireOther(kind, name, other, name);
                }
                for (LoadedPlugin earlier : plugins) {
                    for (Kind other : earlier.kinds()) {
                        requireOther(kind, shown(name, place), other, shown(earlier.name(), earlier.place()));
                    }
                }
                own.add(kind);
            }
            plugins.add(new LoadedPlugin(name, origin, place, version, kinds));
        } catch (PluginException e) {
            throw e;
        } catch (LinkageError e) {
            throw otherRelease(where, e);
        } catch (RuntimeException e) {
            throw new PluginException(where + " failed when it was asked what it offers: " + firstLine(e), e);
        }
    }

    private static PluginException otherRelease(String where, Throwable e) {
        return new PluginException(
                where + " was built against another release of Millrace, or lacks classes it needs: "
                        + e.getClass().getSimpleName() + ": " + firstLine(e)
                        + "; build it against the artifacts of this release, and put what it needs into its jar",
                e);
    }

    private static String shown(String name, String place) {
        return name + " (" + place + ")";
    }

    private void requireUsable(String where, Kind kind) {
        if (points.stream().noneMatch(point -> point.type() == kind.extensionPoint())) {
            throw new PluginException(where + " offers " + kind.name() + " through "
                    + kind.extensionPoint().getName()
                    + ", which is no extension point; the extension points are "
                    + String.join(
                            ", ",
                            points.stream().map(point -> point.type().getName()).toList()));
        }
        if (!Modifier.isPublic(kind.type().getModifiers())) {
            throw new PluginException(where + " offers " + kind.name() + ", whose record "
                    + kind.type().getName() + " is not public, so it cannot be configured");
        }
    }

    private static void requireOther(Kind kind, String plugin, Kind other, String otherPlugin) {
        if (kind.extensionPoint() == other.extensionPoint()
                && (other.isCalled(kind.name()) || kind.aliases().stream().anyMatch(other::isCalled))) {
            throw new PluginException("two kinds of " + kind.extensionPoint().getSimpleName() + " are called "
                    + kind.name() + ": of " + otherPlugin + " and of " + plugin + "; give one another name");
        }
        if (kind.type() == other.type() && !kind.name().equals(other.name())) {
            throw new PluginException(
                    "the record " + kind.type().getName() + " is offered as " + other.name() + " by " + otherPlugin
                            + " and as " + kind.name() + " by " + plugin + "; a record is one kind, with one name");
        }
    }

    private static String version(String where, Path jar) {
        try (JarFile file = new JarFile(jar.toFile())) {
            return Optional.ofNullable(file.getManifest())
                    .map(manifest -> manifest.getMainAttributes().getValue(Attributes.Name.IMPLEMENTATION_VERSION))
                    .orElse("");
        } catch (IOException e) {
            throw new PluginException(
                    where + " cannot be read: " + jar.getFileName() + " is no jar (" + firstLine(e)
                            + "); build it anew, or take it away",
                    e);
        }
    }

    private static URL url(Path jar) {
        try {
            return jar.toUri().toURL();
        } catch (MalformedURLException e) {
            throw new IllegalStateException("a file always has an address: " + jar, e);
        }
    }

    private static String firstLine(Throwable e) {
        String message =
                e.getMessage() == null ? "" : e.getMessage().lines().findFirst().orElse("");
        return message.isEmpty() ? e.getClass().getSimpleName() : message;
    }

    private static String cause(Throwable e) {
        return e.getCause() == null
                ? ""
                : " (" + e.getCause().getClass().getSimpleName() + ": " + firstLine(e.getCause()) + ")";
    }
}
