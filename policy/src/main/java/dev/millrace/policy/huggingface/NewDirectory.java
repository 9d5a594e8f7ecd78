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
final class NewDirectory {
    private NewDirectory() {}

    /** Writes its contents. */
    @FunctionalInterface
    interface Content {
        void write(Path into) throws IOException;
    }

    /** @throws CheckpointException if the directory exists; after any exception nothing is left behind */
    static void write(Path directory, Content content) throws IOException {
        if (Files.exists(directory, LinkOption.NOFOLLOW_LINKS)) {
            throw new CheckpointException(
                    directory + " is there already, and nothing is overwritten; name a new directory");
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

    private static void remove(Path partial) throws IOException {
        if (!Files.exists(partial)) {
            return;
        }
        try (Stream<Path> left = Files.walk(partial)) {
            for (Path path : left.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(path);
            }
        }
    }
}
