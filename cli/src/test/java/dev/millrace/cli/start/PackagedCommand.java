package dev.millrace.cli.start;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileTime;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * {@code millrace} from the packaged jars, with the first compiler alone, since a test's process ends before the second one's work
 * pays, and with the classes of a run in one mapped file, as the launcher starts it: half of a start is their loading.
 *
 * <p>The first test that needs that file makes it by a short run; other processes of the build wait for it. A Java that
 * cannot make one starts without.
 */
public final class PackagedCommand {
    private static final Path LIBRARIES = Path.of("target", "lib").toAbsolutePath();
    private static final Path ARCHIVE = Path.of("target", "tests.jsa").toAbsolutePath();
    private static final List<String> SHORT_RUN = List.of(
            "train",
            "--plain",
            "--max-steps",
            "1",
            "--set",
            "goal.max_seconds=600",
            "--set",
            "admission.batch_sequences=32",
            "--set",
            "topology.batch.sequences=32");
    private static final long LIMIT_MINUTES = 15;

    private PackagedCommand() {}

    /** The words of a command line up to where the arguments of {@code millrace} begin. */
    public static List<String> words() {
        List<String> words = machine();
        if (isPrepared()) {
            words.addAll(List.of("-XX:SharedArchiveFile=" + ARCHIVE, "-Xlog:cds=off", "-Xlog:cds+dynamic=off"));
        }
        words.addAll(main(LIBRARIES));
        return words;
    }

    /** Those of another build, whose jars are in a folder. */
    public static List<String> words(Path libraries) {
        List<String> words = machine();
        words.addAll(main(libraries));
        return words;
    }

    /** Writes {@code millrace} into a folder, as a script that starts it, so that commands there are typed as in a clone. */
    public static void writeTo(Path folder) throws IOException {
        String words = words().stream().map(word -> "'" + word + "'").collect(Collectors.joining(" "));
        Path command =
                Files.writeString(folder.resolve("millrace"), "#!/usr/bin/env bash\nexec " + words + " \"$@\"\n");
        if (!command.toFile().setExecutable(true)) {
            throw new IOException(command + " cannot be made executable");
        }
    }

    private static List<String> machine() {
        return new ArrayList<>(List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-Xmx1g",
                "-XX:+UseSerialGC",
                "-XX:TieredStopAtLevel=1",
                "-XX:-UsePerfData",
                "-Djava.awt.headless=true",
                "-Duser.language.format=en", // as the launcher does
                "-Duser.country.format=US"));
    }

    private static List<String> main(Path libraries) {
        return List.of("-cp", libraries + "/*", "dev.millrace.cli.Main");
    }

    private static synchronized boolean isPrepared() {
        try (FileChannel channel = FileChannel.open(
                        ARCHIVE.resolveSibling("tests.jsa.lock"), StandardOpenOption.CREATE, StandardOpenOption.WRITE);
                var lock = channel.lock()) {
            if (!isNewerThanTheJars()) {
                prepare();
            }
            return lock.isValid() && Files.size(ARCHIVE) > 0;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static boolean isNewerThanTheJars() throws IOException {
        if (!Files.exists(ARCHIVE)) {
            return false;
        }
        FileTime made = Files.getLastModifiedTime(ARCHIVE);
        try (Stream<Path> jars = Files.list(LIBRARIES)) {
            return jars.allMatch(jar -> jar.toFile().lastModified() <= made.toMillis());
        }
    }

    /** Leaves an empty file where it does not work, so that nobody tries again. */
    private static void prepare() throws IOException {
        Path folder = Files.createTempDirectory(ARCHIVE.getParent(), "prepared");
        Path made = folder.resolve("classes.jsa");
        List<String> words = machine();
        words.add("-XX:ArchiveClassesAtExit=" + made);
        words.addAll(main(LIBRARIES));
        words.addAll(SHORT_RUN);
        words.addAll(List.of("--run-dir", folder.resolve("run").toString()));
        Process run = new ProcessBuilder(words)
                .redirectErrorStream(true)
                .redirectOutput(folder.resolve("log").toFile())
                .start();
        Optional<Integer> status = status(run);
        if (status.equals(Optional.of(0)) && Files.exists(made)) {
            Files.move(made, ARCHIVE, StandardCopyOption.REPLACE_EXISTING);
            return;
        }
        System.err.println(
                "starts take longer: no archive of classes was made; " + folder.resolve("log") + " says why");
        Files.deleteIfExists(ARCHIVE);
        Files.createFile(ARCHIVE);
    }

    private static Optional<Integer> status(Process run) {
        try {
            if (run.waitFor(LIMIT_MINUTES, TimeUnit.MINUTES)) {
                return Optional.of(run.exitValue());
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        run.destroyForcibly();
        return Optional.empty();
    }
}
