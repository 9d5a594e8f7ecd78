package dev.millrace.chaos.observe;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.OptionalDouble;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * What a JVM's objects take that it cannot let go of: the heap after a full collection, which the JDK's {@code jcmd} asks for.
 *
 * <p>Resident memory says how large a heap has grown, which a collector decides; this says whether something leaks.
 */
public final class ProcessHeap {
    private static final Path JCMD = Path.of(System.getProperty("java.home"), "bin", "jcmd");
    private static final Path PROCESSES = Path.of("/proc");
    private static final long LIMIT_S = 120;
    /** The last line of a histogram of live objects: how many there are, and their bytes. */
    private static final Pattern TOTAL = Pattern.compile("Total\\s+\\d+\\s+(\\d+)");

    private static final Pattern STILL = Pattern.compile("State:\\s+[TtZ]");
    private static final double MEGABYTE = 1 << 20;

    private ProcessHeap() {}

    /** Whether this machine can say: Linux, and a JDK. */
    public static boolean isAvailable() {
        return Files.isExecutable(JCMD) && Files.isDirectory(PROCESSES.resolve("self"));
    }

    /**
     * Megabytes of a process, which collects its whole heap for it; empty for one that stands still or is gone. Not to be asked of a
     * JVM that is just starting: it would take the question for a signal to end.
     */
    public static OptionalDouble megabytes(long pid) throws InterruptedException {
        if (isStill(pid)) {
            return OptionalDouble.empty();
        }
        try {
            Process jcmd = new ProcessBuilder(List.of(
                            JCMD.toString(),
                            "-J-Xmx48m",
                            "-J-XX:+UseSerialGC",
                            "-J-XX:TieredStopAtLevel=1",
                            Long.toString(pid),
                            "GC.class_histogram"))
                    .redirectErrorStream(true)
                    .start();
            jcmd.getOutputStream().close();
            Thread limit = new Thread(() -> endAfter(jcmd), "limit of jcmd");
            limit.setDaemon(true);
            limit.start();
            OptionalDouble found = total(jcmd);
            jcmd.waitFor();
            return found;
        } catch (IOException e) {
            return OptionalDouble.empty(); // it ended while it was asked
        }
    }

    /** Such as a process that was suspended after it was looked at. */
    private static void endAfter(Process jcmd) {
        try {
            if (!jcmd.waitFor(LIMIT_S, TimeUnit.SECONDS)) {
                jcmd.destroyForcibly();
            }
        } catch (InterruptedException e) {
            jcmd.destroyForcibly();
        }
    }

    private static OptionalDouble total(Process jcmd) throws IOException {
        OptionalDouble found = OptionalDouble.empty();
        try (BufferedReader lines =
                new BufferedReader(new InputStreamReader(jcmd.getInputStream(), StandardCharsets.UTF_8))) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                Matcher total = TOTAL.matcher(line);
                if (total.matches()) {
                    found = OptionalDouble.of(Long.parseLong(total.group(1)) / MEGABYTE);
                }
            }
        }
        return found;
    }

    private static boolean isStill(long pid) {
        try {
            return STILL.matcher(Files.readString(
                            PROCESSES.resolve(Long.toString(pid)).resolve("status")))
                    .find();
        } catch (IOException gone) {
            return true;
        }
    }
}
