package dev.millrace.report;

import com.fasterxml.jackson.annotation.JsonUnwrapped;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Where, when and with what something was measured.
 *
 * @param commit with {@code +} if files differ from it; {@code unknown} outside a checkout
 * @param loadAverage of the last minute at the start; negative if unknown
 */
public record ReportOrigin(
        String command,
        String commit,
        String machine,
        int processors,
        @JsonUnwrapped Software software,
        String startedAt,
        double loadAverage) {

    /** @param kafka client version; null if unused */
    public record Software(String jvm, @Nullable String kafka) {}

    /** Load per processor above which figures are disturbed. */
    private static final double MOST_LOAD = 2.0;

    /** @param kafka client version; null if unused */
    public static ReportOrigin here(String command, @Nullable String kafka) {
        return new ReportOrigin(
                command,
                commitHere(),
                machineHere(),
                Runtime.getRuntime().availableProcessors(),
                new Software(System.getProperty("java.vm.name") + " " + Runtime.version(), kafka),
                Instant.now().truncatedTo(ChronoUnit.SECONDS).toString(),
                ManagementFactory.getOperatingSystemMXBean().getSystemLoadAverage());
    }

    /** Says that the machine was busy; empty if it was not. */
    public Optional<String> busy() {
        return loadAverage > MOST_LOAD * processors
                ? Optional.of(String.format(
                        Locale.ROOT,
                        "Machine busy, not a measurement: load average %.1f on %d processors when it began, expected at most %.1f;"
                                + " repeat it on a quiet machine.",
                        loadAverage,
                        processors,
                        MOST_LOAD * processors))
                : Optional.empty();
    }

    /** Sentences for the head of a text or the foot of a page. */
    public List<String> lines() {
        return List.of(
                String.format(
                        Locale.ROOT,
                        "%s, %d processors%s; %s%s; commit %s; %s",
                        machine,
                        processors,
                        loadAverage < 0 ? "" : String.format(Locale.ROOT, ", load average %.1f", loadAverage),
                        software.jvm(),
                        software.kafka() == null ? "" : "; Kafka " + software.kafka(),
                        commit,
                        startedAt),
                command);
    }

    private static String commitHere() {
        return git("rev-parse", "--short", "HEAD")
                .map(head -> head
                        + git("status", "--porcelain", "--untracked-files=no")
                                .filter(changes -> !changes.isEmpty())
                                .map(c -> "+")
                                .orElse(""))
                .orElse("unknown");
    }

    private static Optional<String> git(String... arguments) {
        String[] command = Stream.concat(Stream.of("git"), Stream.of(arguments)).toArray(String[]::new);
        try {
            Process process = new ProcessBuilder(command)
                    .redirectError(ProcessBuilder.Redirect.DISCARD)
                    .start();
            String said = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8).strip();
            return process.waitFor(10, TimeUnit.SECONDS) && process.exitValue() == 0
                    ? Optional.of(said)
                    : Optional.empty();
        } catch (IOException e) {
            return Optional.empty(); // no git: then there is no commit to name
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return Optional.empty();
        }
    }

    private static String machineHere() {
        String system = System.getProperty("os.name") + " " + System.getProperty("os.arch");
        try (Stream<String> lines = Files.lines(Path.of("/proc/cpuinfo"))) {
            return lines.filter(line -> line.startsWith("model name"))
                    .findFirst()
                    .map(line -> line.substring(line.indexOf(':') + 1).strip() + ", " + system)
                    .orElse(system);
        } catch (IOException | java.io.UncheckedIOException e) {
            return system; // not Linux
        }
    }
}
