package dev.millrace.workloads.closed;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/** This process's largest resident size, as Linux says it. */
final class ResidentMemory {
    private static final Path STATUS = Path.of("/proc/self/status");
    private static final String MOST = "VmHWM:";

    private ResidentMemory() {}

    /** 0 where the system does not say. */
    static long mostBytes() {
        List<String> lines;
        try {
            lines = Files.readAllLines(STATUS);
        } catch (IOException e) {
            return 0;
        }
        return lines.stream()
                .filter(line -> line.startsWith(MOST))
                .mapToLong(line -> Long.parseLong(line.replaceAll("\\D", "")) << 10)
                .findFirst()
                .orElse(0);
    }
}
