package dev.millrace.docs.reference;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;

/** Guarantees of a run, and the tests that hold each: lines of {@code promise | Test, Test}. */
final class Promises {
    private static final String FILE = "promises.txt";

    /**
     * A promise.
     *
     * @param tests simple names of their classes
     */
    record Promise(String text, List<String> tests) {
        public Promise {
            tests = List.copyOf(tests);
        }
    }

    private Promises() {}

    /** In the order of the file. */
    static List<Promise> all() {
        try (BufferedReader lines = new BufferedReader(new InputStreamReader(
                Objects.requireNonNull(Promises.class.getResourceAsStream(FILE), FILE), StandardCharsets.UTF_8))) {
            return lines.lines()
                    .filter(line -> !line.isBlank())
                    .map(Promises::parse)
                    .toList();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static Promise parse(String line) {
        int bar = line.lastIndexOf('|');
        if (bar < 0) {
            throw new IllegalStateException("a line of " + FILE + " names no test: " + line);
        }
        return new Promise(
                line.substring(0, bar).strip(),
                Arrays.stream(line.substring(bar + 1).split(","))
                        .map(String::strip)
                        .toList());
    }
}
