package dev.millrace.cli.correct;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** Whether two paths lead to one file, whatever they look like. */
final class SameFile {
    private SameFile() {}

    /**
     * Whether they do: through links, or by another way to the folder. A path to nothing is compared by where the file would
     * be.
     */
    static boolean is(Path one, Path other) throws IOException {
        return Files.exists(one) && Files.exists(other)
                ? Files.isSameFile(one, other)
                : place(one).equals(place(other));
    }

    private static Path place(Path path) throws IOException {
        Path absolute = path.toAbsolutePath().normalize();
        Path folder = absolute.getParent();
        return folder != null && Files.isDirectory(folder)
                ? folder.toRealPath().resolve(absolute.getFileName())
                : absolute;
    }
}
