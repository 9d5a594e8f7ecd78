package dev.millrace.workloads.closed;

import com.sun.management.HotSpotDiagnosticMXBean;
import java.lang.management.ManagementFactory;
import java.util.Locale;
import java.util.Optional;

/**
 * Memory that a measurement needs.
 *
 * @param directBytes next to the heap: weights, gradient and both moments, or copies of a version
 * @param heapBytes base of the next delta, and its part in flight
 */
public record MemoryNeed(long directBytes, long heapBytes) {
    private static final long BESIDE = 512L << 20; // caches, activations, buffers of clients
    private static final int DIRECT_COPIES = 4;

    /** In float32 on the CPU. */
    public static MemoryNeed of(long parameters) {
        return of(parameters, 0);
    }

    public static MemoryNeed of(long parameters, int more) {
        return new MemoryNeed(
                parameters * Float.BYTES * (DIRECT_COPIES + more) + BESIDE, 2L * Short.BYTES * parameters + BESIDE);
    }

    /** What to change if this JVM has too little; empty if it has enough. */
    public Optional<String> refusal(String model) {
        return refusal(model, option("MaxHeapSize"), directLimit());
    }

    Optional<String> refusal(String model, long heapLimit, long directLimit) {
        if (heapBytes <= heapLimit && directBytes <= directLimit) {
            return Optional.empty();
        }
        return Optional.of(String.format(
                Locale.ROOT,
                "%s takes %.1f GB of heap and %.1f GB outside it, and this JVM may take %.1f and %.1f; begin with"
                        + " MILLRACE_OPTS='-Xmx%dm -XX:MaxDirectMemorySize=%dm', or measure a smaller one",
                model,
                heapBytes / 1e9,
                directBytes / 1e9,
                heapLimit / 1e9,
                directLimit / 1e9,
                megabytes(heapBytes),
                megabytes(directBytes)));
    }

    private static long megabytes(long bytes) {
        return (bytes >> 20) + 1;
    }

    /** The heap's limit unless set separately. */
    private static long directLimit() {
        long set = option("MaxDirectMemorySize");
        return set == 0 ? option("MaxHeapSize") : set;
    }

    /** As given on the command line: {@code Runtime.maxMemory} excludes what a collector reserves. */
    private static long option(String name) {
        return Long.parseLong(ManagementFactory.getPlatformMXBean(HotSpotDiagnosticMXBean.class)
                .getVMOption(name)
                .getValue());
    }
}
