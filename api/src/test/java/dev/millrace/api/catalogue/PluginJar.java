package dev.millrace.api.catalogue;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.jar.Attributes;
import java.util.jar.JarEntry;
import java.util.jar.JarOutputStream;
import java.util.jar.Manifest;
import java.util.stream.Stream;
import javax.tools.ToolProvider;

/** A plug-in's jar, compiled from text as its author would have compiled it. */
final class PluginJar {
    private final Path folder;
    private final Map<String, String> sources = new LinkedHashMap<>();
    private String services = "";
    private String version = "1.2";

    PluginJar(Path folder) {
        this.folder = folder;
    }

    /** One that offers a bell. */
    static PluginJar bell(Path folder, String plugin, String kind) {
        return new PluginJar(folder)
                .source(
                        "lab.Gong",
                        "package lab; public record Gong(int size) implements dev.millrace.api.catalogue.TestPoint.Bell {}")
                .plugin("lab.Lab", plugin, "Kind.of(TestPoint.Bell.class, \"" + kind + "\", new Gong(9), \"Loud.\")");
    }

    PluginJar source(String name, String text) {
        sources.put(name, text);
        return this;
    }

    PluginJar services(String text) {
        services = text;
        return this;
    }

    PluginJar plugin(String type, String name, String kinds) {
        return source(type, """
                        package lab;
                        import dev.millrace.api.catalogue.*;
                        import dev.millrace.api.plugin.*;
                        import java.util.List;
                        public final class %s implements Plugin {
                            public String name() { return "%s"; }
                            public int apiVersion() { return PluginApi.VERSION; }
                            public List<Kind> kinds() { return List.of(%s); }
                        }
                        """.formatted(type.replace("lab.", ""), name, kinds))
                .services(services + type + "\n");
    }

    /** Compiles and packs it; what has been compiled under {@code without} stays out of the jar. */
    Path write(String file, String... without) throws IOException {
        Path work = Files.createTempDirectory(folder, "classes");
        List<String> arguments = new ArrayList<>(
                List.of("-d", work.toString(), "-cp", System.getProperty("java.class.path"), "-proc:none"));
        for (Map.Entry<String, String> source : sources.entrySet()) {
            Path java = folder.resolve("src-" + work.getFileName())
                    .resolve(source.getKey().replace('.', '/') + ".java");
            Files.createDirectories(java.getParent());
            Files.writeString(java, source.getValue());
            arguments.add(java.toString());
        }
        if (ToolProvider.getSystemJavaCompiler().run(null, null, null, arguments.toArray(String[]::new)) != 0) {
            throw new AssertionError("the plug-in of the test does not compile");
        }
        Path jar = folder.resolve(file);
        Files.createDirectories(jar.getParent());
        Manifest manifest = new Manifest();
        manifest.getMainAttributes().put(Attributes.Name.MANIFEST_VERSION, "1.0");
        manifest.getMainAttributes().put(Attributes.Name.IMPLEMENTATION_VERSION, version);
        try (OutputStream out = Files.newOutputStream(jar);
                JarOutputStream entries = new JarOutputStream(out, manifest);
                Stream<Path> classes = Files.walk(work)) {
            for (Path each : classes.filter(Files::isRegularFile).toList()) {
                String name = work.relativize(each).toString().replace('\\', '/');
                if (Stream.of(without).noneMatch(name::startsWith)) {
                    entries.putNextEntry(new JarEntry(name));
                    Files.copy(each, entries);
                }
            }
            if (!services.isEmpty()) {
                entries.putNextEntry(new JarEntry("META-INF/services/dev.millrace.api.plugin.Plugin"));
                entries.write(services.getBytes(StandardCharsets.UTF_8));
            }
        }
        return jar;
    }
}
