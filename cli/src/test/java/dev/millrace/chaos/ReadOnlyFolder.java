package dev.millrace.chaos;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/**
 * A folder made read-only for everybody, root and open files included, like a disk that the system remounts after an error. Uses
 * the immutable attribute of Linux file systems, which only root may set.
 */
final class ReadOnlyFolder implements AutoCloseable {
    private final Path folder;

    private ReadOnlyFolder(Path folder) {
        this.folder = folder;
    }

    /** Whether this machine can do it, in the folder for temporary files; it is tried. */
    static boolean isAvailable() {
        try {
            Path tried = Files.createTempFile("millrace-chaos-", "-read-only");
            try {
                return set(tried, "+i") && set(tried, "-i");
            } finally {
                Files.deleteIfExists(tried);
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Makes it so, with all that is in it, until this is closed. */
    static ReadOnlyFolder of(Path folder) {
        if (!set(folder, "+i")) {
            set(folder, "-i"); // of those that were reached
            throw new ChaosException(folder + " cannot be made read-only: chattr +i failed");
        }
        return new ReadOnlyFolder(folder);
    }

    private static boolean set(Path path, String attribute) {
        return MachineTool.ran(List.of("chattr", "-R", attribute, path.toString()));
    }

    @Override
    public void close() {
        if (!set(folder, "-i")) {
            throw new ChaosException(folder + " is still read-only: chattr -R -i failed");
        }
    }
}
