package dev.millrace.cli.run;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * Detects whether this process may draw on the terminal. A background job that changes terminal settings is stopped
 * by the operating system, and its output mixes with the user's typing.
 */
final class Foreground {
    private static final Path STAT = Path.of("/proc/self/stat");
    private static final int GROUP = 2;
    private static final int TERMINAL_GROUP = 5;

    private Foreground() {}

    /** True in the foreground, or if unknown. */
    static boolean isOurs() {
        try {
            return !Files.isReadable(STAT) || isForeground(Files.readString(STAT));
        } catch (IOException e) {
            return true;
        }
    }

    /** @param stat the line of proc(5): the process group and its terminal's follow the name in parentheses */
    static boolean isForeground(String stat) {
        String[] fields = stat.substring(stat.lastIndexOf(')') + 2).split(" ");
        return fields[GROUP].equals(fields[TERMINAL_GROUP]);
    }
}
