package dev.millrace.chaos.process;

import dev.millrace.chaos.ChaosException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** One process of a member of the run. Thread-safe. */
public final class RoleProcess {
    private static final long GONE_LIMIT_S = 60;

    private final String name;
    private final Process process;
    private final Path out;
    private final Path log;
    private final long startedNanos = System.nanoTime();

    RoleProcess(String name, Process process, Path out, Path log) {
        this.name = name;
        this.process = process;
        this.out = out;
        this.log = log;
    }

    /** The member's, and which life it is. */
    public String name() {
        return name;
    }

    public long pid() {
        return process.pid();
    }

    public boolean isAlive() {
        return process.isAlive();
    }

    /** Seconds since it was started. */
    public double ageSeconds() {
        return (System.nanoTime() - startedNanos) / 1e9;
    }

    /** Ends it at once, as a failing machine would, and waits until it is gone. */
    public void kill() {
        process.destroyForcibly();
        if (!awaitEnd(GONE_LIMIT_S)) {
            throw new ChaosException(name + " is there " + GONE_LIMIT_S + " s after it was killed");
        }
    }

    /** Asks it to stop, and waits; false if it is there after the limit. */
    public boolean stop(long limitSeconds) {
        process.destroy();
        return awaitEnd(limitSeconds);
    }

    /** Waits until it is gone; false if it is there after the limit. */
    public boolean awaitEnd(long limitSeconds) {
        try {
            return process.waitFor(limitSeconds, TimeUnit.SECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return !process.isAlive();
        }
    }

    /** Of a process that has ended. */
    public int exitStatus() {
        return process.exitValue();
    }

    /** All that it has written to its output. */
    List<String> said() {
        return lines(out);
    }

    /** All that it has logged. */
    List<String> logged() {
        return lines(log);
    }

    private static List<String> lines(Path file) {
        try {
            return Files.exists(file) ? Files.readAllLines(file) : List.of();
        } catch (IOException e) {
            return List.of(file + " cannot be read: " + e.getMessage());
        }
    }

    /** Its exit status and its last line. */
    public String lastWords() {
        List<String> lines = said();
        String last = lines.stream()
                .filter(line -> line.startsWith("millrace: "))
                .reduce((first, second) -> second)
                .orElse(lines.isEmpty() ? "nothing" : lines.get(lines.size() - 1));
        return (process.isAlive() ? "alive" : "status " + process.exitValue()) + ", " + last;
    }
}
