package dev.millrace.cli.loadtest;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.stream.Stream;
import picocli.CommandLine.Model.CommandSpec;

/** A directory for a broker's data and state while something is measured; removed afterwards. */
record Scratch(Path directory) implements AutoCloseable {

    /** Under the system's directory for temporary files. */
    static Scratch make() throws IOException {
        return new Scratch(Files.createTempDirectory("millrace-load-"));
    }

    /** What was typed, as a command line. */
    static String typed(CommandSpec spec) {
        return "./millrace "
                + String.join(" ", spec.root().commandLine().getParseResult().originalArgs());
    }

    @Override
    public void close() throws IOException {
        try (Stream<Path> files = Files.walk(directory)) {
            files.sorted(Comparator.reverseOrder()).forEach(file -> {
                try {
                    Files.deleteIfExists(file);
                } catch (IOException e) {
                    throw new UncheckedIOException(e);
                }
            });
        }
    }
}
