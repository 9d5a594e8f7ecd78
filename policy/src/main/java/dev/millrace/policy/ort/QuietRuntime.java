package dev.millrace.policy.ort;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;

/**
 * Finds ONNX Runtime's library, where it can be loaded without harm.
 *
 * <p>Since 1.29 the library has a telemetry client on Linux. It copies the process' command line, and from some 4000 bytes on,
 * which a class path reaches easily, it ends the process while the environment is made, without a word. The variable
 * {@value #VARIABLE} keeps it from doing so; it must be set before the process starts.
 */
final class QuietRuntime {
    static final String VARIABLE = "ORT_DISABLE_TELEMETRY";
    /** 3157 bytes were seen to work, and 4057 to end the process. */
    static final int MOST_BYTES = 3000;

    private static final Path COMMAND_LINE = Path.of("/proc/self/cmdline");

    private QuietRuntime() {}

    /** @throws IllegalStateException where using it would end the process */
    static Path library() {
        require(System.getenv(VARIABLE), commandLineBytes());
        return NativeLibraries.runtime();
    }

    /** @param disabled the variable's value; null where it is not set */
    static void require(@Nullable String disabled, long commandLineBytes) {
        boolean on = disabled == null || disabled.isEmpty() || disabled.equals("0");
        if (on && commandLineBytes > MOST_BYTES) {
            throw new IllegalStateException(
                    "the command line of this process has " + commandLineBytes + " bytes, and above " + MOST_BYTES
                            + " ONNX Runtime's telemetry may end it without a word; start it with " + VARIABLE
                            + "=1 in its environment, as the launcher does, or pass the class path as CLASSPATH");
        }
    }

    /** 0 where there is no such file; the library looks at it where there is. */
    private static long commandLineBytes() {
        try {
            return Files.exists(COMMAND_LINE) ? Files.readAllBytes(COMMAND_LINE).length : 0;
        } catch (IOException e) {
            return 0;
        }
    }
}
