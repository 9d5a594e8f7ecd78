package dev.millrace.cli;

import com.sun.management.UnixOperatingSystemMXBean;
import dev.millrace.runtime.RefusedRequestException;
import java.lang.management.ManagementFactory;

/** What an error means where the machine gives too little memory or too few files: a sentence in place of a trace. */
final class Scarcity {
    /** What a run has open, and some more. */
    private static final long FILES_NEEDED = 1024;

    private final long files = ManagementFactory.getOperatingSystemMXBean() instanceof UnixOperatingSystemMXBean system
            ? system.getMaxFileDescriptorCount()
            : Long.MAX_VALUE;
    private final long memory = Runtime.getRuntime().maxMemory();

    /**
     * The exception with the sentence.
     *
     * @throws Error the error itself, where nothing is scarce
     */
    RuntimeException explained(Error error) {
        if (error instanceof OutOfMemoryError) {
            return new RefusedRequestException(
                    "Java's memory of " + memory / 1_000_000 + " MB is not enough (" + error.getMessage()
                            + "); give it more (MILLRACE_OPTS=-Xmx4g), or give it less to read",
                    error);
        }
        if (files < FILES_NEEDED) {
            return new RefusedRequestException(
                    "only " + files + " files may be open at once, and a run needs " + FILES_NEEDED
                            + "; raise the limit (ulimit -n " + FILES_NEEDED + ")",
                    error);
        }
        throw error;
    }
}
