package dev.millrace.policy.huggingface;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Comparator;
import java.util.Optional;
import java.util.stream.Stream;

/** Creates a directory atomically, and never replaces another. */
public final class NewDirectory {
    private NewDirectory() {}

    @FunctionalInterface
    interface Content {
        void write(Path into) throws IOException;
    }

    /** @throws CheckpointException if the directory exists; after any exception nothing is left behind */
    static void write(Path directory, Content content) throws IOException {
        if (Files.exists(directory, LinkOption.NOFOLLOW_LINKS)) {
            throw new CheckpointException(directory + " exists and is not overwritten; name a new directory");
        }
        Path absolute = directory.toAbsolutePath().normalize();
        Path parent = Optional.ofNullable(absolute.getParent()).orElse(absolute);
        Files.createDirectories(parent);
        Path partial = Files.createTempDirectory(parent, "." + absolute.getFileName() + ".partial-");
        try {
            content.write(partial);
            Files.move(partial, absolute, StandardCopyOption.ATOMIC_MOVE);
        } finally {
            remove(partial);
        }
    }

    /** Deletes a directory with its contents, if it exists. */
    public static void remove(Path directory) throws IOException {
        if (!Files.exists(directory)) {
            return;
        }
        try (Stream<Path> left = Files.walk(directory)) {
            for (Path path : left.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(path);
            }
        }
    }
}
