package dev.millrace.chaos;

import java.util.List;

/**
 * The limit of Linux on how large a process' files may grow: a write beyond it fails, as one to a full disk does, and nobody need be
 * root, nor lose a disk, for it.
 */
final class FileSizeLimit {
    /** Less than any segment that was written to. */
    static final String NOTHING_GROWS = "1024";

    private FileSizeLimit() {}

    /** Whether this machine can do it. */
    static boolean isAvailable() {
        return MachineTool.ran(List.of("prlimit", "--version"));
    }

    /** Sets it for a running process. */
    static void set(long pid, String bytes) {
        if (!MachineTool.ran(List.of("prlimit", "--pid", Long.toString(pid), "--fsize=" + bytes))) {
            throw new ChaosException("prlimit could not set the file size limit of process " + pid);
        }
    }
}
