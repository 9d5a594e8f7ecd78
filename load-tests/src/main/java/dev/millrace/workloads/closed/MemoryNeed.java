package dev.millrace.workloads.closed;

import com.sun.management.HotSpotDiagnosticMXBean;
import java.lang.management.ManagementFactory;
import java.util.Locale;
import java.util.Optional;

/**
 * What measuring a model takes of this JVM.
 *
 * @param directBytes beside the heap: weights, their gradient and both moments of the optimiser, or some copies of a version
 * @param heapBytes what the next version is a delta against, and what of it is on its way
 */
public record MemoryNeed(long directBytes, long heapBytes) {
    private static final long BESIDE = 512L << 20; // caches, activations, buffers of clients
    private static final int DIRECT_COPIES = 4;

    /** Of a model with so many parameters, in float32 on the CPU. */
    public static MemoryNeed of(long parameters) {
        return of(parameters, 0);
    }

    /** @param more copies of the weights: a version that is made ready, and what is rounded of each */
    public static MemoryNeed of(long parameters, int more) {
        return new MemoryNeed(
                parameters * Float.BYTES * (DIRECT_COPIES + more) + BESIDE, 2L * Short.BYTES * parameters + BESIDE);
    }

    /** What to do where this JVM may take less, as a sentence; empty where it may take as much. */
    public Optional<String> refusal(String model) {
        return refusal(model, option("MaxHeapSize"), directLimit());
    }

    Optional<String> refusal(String model, long heapLimit, long directLimit) {
        if (heapBytes <= heapLimit && directBytes <= directLimit) {
            return Optional.empty();
        }
        return Optional.of(String.format(
                Locale.ROOT,
                "%s takes %.1f GB of heap and %.1f GB beside it, and this JVM may take %.1f and %.1f; begin with"
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

    /** As much as the heap's limit unless it is set by itself. */
    private static long directLimit() {
        long set = option("MaxDirectMemorySize");
        return set == 0 ? option("MaxHeapSize") : set;
    }

    /** As it was given: what the runtime calls its largest memory is less, by what a collector keeps free. */
    private static long option(String name) {
        return Long.parseLong(ManagementFactory.getPlatformMXBean(HotSpotDiagnosticMXBean.class)
                .getVMOption(name)
                .getValue());
    }
}
