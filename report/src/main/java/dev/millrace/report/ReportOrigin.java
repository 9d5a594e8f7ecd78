package dev.millrace.report;

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
 * @param command as it was typed, nearly
 * @param commit of the checkout it was started in, with {@code +} where files differ from it; {@code unknown} outside of one
 * @param kafka version of the clients; null where none took part
 * @param loadAverage of the last minute when it began; negative where the system does not say
 */
public record ReportOrigin(
        String command,
        String commit,
        String machine,
        int processors,
        String jvm,
        @Nullable String kafka,
        String startedAt,
        double loadAverage) {

    /** Load average per processor above which others take a good part of what is measured; a load test before it leaves less. */
    private static final double MOST_LOAD = 2.0;

    private static final Path CPUINFO = Path.of("/proc/cpuinfo");

    /**
     * Here and now.
     *
     * @param kafka version of the clients; null where none takes part
     */
    public static ReportOrigin here(String command, @Nullable String kafka) {
        return new ReportOrigin(
                command,
                commitHere(),
                machineHere(),
                Runtime.getRuntime().availableProcessors(),
                System.getProperty("java.vm.name") + " " + Runtime.version(),
                kafka,
                Instant.now().truncatedTo(ChronoUnit.SECONDS).toString(),
                ManagementFactory.getOperatingSystemMXBean().getSystemLoadAverage());
    }

    /** Says that the machine had other work when it began, so that figures of speed are none; empty if it had little. */
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

    /** All of it in sentences, for the head of a text or the foot of a page. */
    public List<String> lines() {
        return List.of(
                String.format(
                        Locale.ROOT,
                        "%s, %d processors%s; %s%s; commit %s; %s",
                        machine,
                        processors,
                        loadAverage < 0 ? "" : String.format(Locale.ROOT, ", load average %.1f", loadAverage),
                        jvm,
                        kafka == null ? "" : "; Kafka " + kafka,
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
        try (Stream<String> lines = Files.lines(CPUINFO)) {
            return lines.filter(line -> line.startsWith("model name"))
                    .findFirst()
                    .map(line -> line.substring(line.indexOf(':') + 1).strip() + ", " + system)
                    .orElse(system);
        } catch (IOException | java.io.UncheckedIOException e) {
            return system; // not Linux
        }
    }
}
