package dev.millrace.report;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Comparator;
import java.util.stream.Stream;

/** Atomic writes: next to the target, then renamed. */
public final class WholeFile {
    /** Suffix of files and folders being written. */
    public static final String UNFINISHED = ".unfinished";

    public interface Writing {
        void to(Path beside) throws IOException;
    }

    private WholeFile() {}

    /** Replaces the file atomically, creating its folders. */
    public static void write(Path file, Writing writing) throws IOException {
        Path absolute = file.toAbsolutePath();
        Files.createDirectories(absolute.getParent());
        Path beside = beside(absolute);
        try {
            writing.to(beside);
            Files.move(beside, absolute, StandardCopyOption.REPLACE_EXISTING, StandardCopyOption.ATOMIC_MOVE);
        } finally {
            Files.deleteIfExists(beside);
        }
    }

    public static void write(Path file, String text) throws IOException {
        write(file, beside -> Files.writeString(beside, text, StandardCharsets.UTF_8));
    }

    /** Deletes a file, or a folder with its contents, if it exists. */
    public static void delete(Path path) throws IOException {
        if (Files.exists(path)) {
            try (Stream<Path> all = Files.walk(path)) {
                for (Path each : all.sorted(Comparator.reverseOrder()).toList()) {
                    Files.delete(each);
                }
            }
        }
    }

    static Path beside(Path file) {
        return file.resolveSibling(file.getFileName() + UNFINISHED);
    }
}
