package dev.millrace.chaos.observe;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * What a process holds, as Linux says it.
 *
 * @param residentMegabytes memory
 * @param threads how many
 * @param handles open files and sockets
 */
public record ProcessFigures(long residentMegabytes, long threads, long handles) {
    private static final Pattern RESIDENT = Pattern.compile("VmRSS:\\s+(\\d+) kB");
    private static final Pattern THREADS = Pattern.compile("Threads:\\s+(\\d+)");

    /** Of a process now; empty where it is gone, or where the system does not say. */
    public static Optional<ProcessFigures> of(long pid) {
        Path process = Path.of("/proc", Long.toString(pid));
        try {
            String status = Files.readString(process.resolve("status"));
            Matcher resident = RESIDENT.matcher(status);
            Matcher threads = THREADS.matcher(status);
            if (!resident.find() || !threads.find()) {
                return Optional.empty();
            }
            try (Stream<Path> open = Files.list(process.resolve("fd"))) {
                return Optional.of(new ProcessFigures(
                        Long.parseLong(resident.group(1)) >> 10, Long.parseLong(threads.group(1)), open.count()));
            }
        } catch (NoSuchFileException gone) {
            return Optional.empty();
        } catch (IOException e) {
            return Optional.empty(); // it ended while it was asked
        }
    }
}
