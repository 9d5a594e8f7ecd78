package dev.millrace.cli.start;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.jar.JarEntry;
import java.util.jar.JarOutputStream;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * A Maven repository with Millrace's artifacts as this build has made them, for projects that use them as a stranger's would. All
 * else, Maven's own plug-ins included, comes from the repository of this build, which has used it already.
 */
public final class StagedRepository {
    private static final Path ROOT = Path.of("..").toAbsolutePath().normalize();
    private static final String VERSION = "0.1.0-SNAPSHOT";
    private static final String LOCAL = System.getProperty(
            "localRepository",
            Path.of(System.getProperty("user.home"), ".m2", "repository").toString());

    private final Path repository;

    /** @param repository made if it is not there; the POM of all modules is in it */
    public StagedRepository(Path repository) throws IOException {
        this.repository = repository;
        Files.copy(ROOT.resolve("pom.xml"), place("millrace").resolve("millrace-" + VERSION + ".pom"));
    }

    /**
     * Puts a module's artifact where Maven finds what was released.
     *
     * @param content a class of it
     */
    public StagedRepository with(String module, Class<?> content) throws IOException {
        String artifact = "millrace-" + module.substring(module.lastIndexOf('/') + 1);
        Path place = place(artifact);
        Files.copy(ROOT.resolve(module).resolve("pom.xml"), place.resolve(artifact + "-" + VERSION + ".pom"));
        Path classes = Path.of(
                content.getProtectionDomain().getCodeSource().getLocation().getPath());
        Path jar = place.resolve(artifact + "-" + VERSION + ".jar");
        if (Files.isRegularFile(classes)) {
            Files.copy(classes, jar);
        } else {
            pack(classes, jar);
        }
        return this;
    }

    /** Runs Maven on a project, offline; it must succeed. */
    public void build(Path project, String... goals) throws IOException, InterruptedException {
        List<String> words =
                new ArrayList<>(List.of("-o", "-Dmaven.repo.local=" + repository, "-Dmaven.repo.local.tail=" + LOCAL));
        words.addAll(List.of(goals));
        maven(project, words);
    }

    /** The jars of a project, from the repository of this build, which fetches what it lacks. */
    public static String classPath(Path project) throws IOException, InterruptedException {
        Path file = project.resolve("class-path");
        maven(
                project,
                List.of(
                        "-Dmaven.repo.local=" + LOCAL,
                        plugin("dependency") + ":build-classpath",
                        "-Dmdep.outputFile=" + file));
        return Files.readString(file);
    }

    /** A plug-in of Maven's own in the version that this build uses. */
    public static String plugin(String name) throws IOException {
        Matcher version = Pattern.compile("<artifactId>maven-" + name + "-plugin</artifactId><version>([^<]+)<")
                .matcher(Files.readString(ROOT.resolve("pom.xml")));
        assertThat(version.find()).isTrue();
        return "org.apache.maven.plugins:maven-" + name + "-plugin:" + version.group(1);
    }

    private static void maven(Path project, List<String> words) throws IOException, InterruptedException {
        Path log = Files.createTempFile(project, "maven", ".log");
        List<String> command = new ArrayList<>(List.of(
                ROOT.resolve("mvnw").toString(),
                "-B",
                "-f",
                project.resolve("pom.xml").toString()));
        command.addAll(words);
        Process maven = new ProcessBuilder(command)
                .redirectErrorStream(true)
                .redirectOutput(log.toFile())
                .start();
        assertThat(maven.waitFor()).as(Files.readString(log)).isZero();
    }

    private Path place(String artifact) throws IOException {
        return Files.createDirectories(
                repository.resolve("dev/millrace").resolve(artifact).resolve(VERSION));
    }

    private static void pack(Path classes, Path target) throws IOException {
        try (OutputStream out = Files.newOutputStream(target);
                JarOutputStream jarOut = new JarOutputStream(out);
                Stream<Path> files = Files.walk(classes)) {
            for (Path file : files.filter(Files::isRegularFile).toList()) {
                jarOut.putNextEntry(
                        new JarEntry(classes.relativize(file).toString().replace('\\', '/')));
                Files.copy(file, jarOut);
            }
        }
    }
}
