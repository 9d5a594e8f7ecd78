package dev.millrace.report;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;

/** Files that are whole when they have their name: written beside it, then renamed. */
public final class WholeFile {
    /** What the name of a file or a folder ends in while it is written. */
    public static final String UNFINISHED = ".unfinished";

    /** Something that writes a file. */
    public interface Writing {
        void to(Path beside) throws IOException;
    }

    private WholeFile() {}

    /** Writes a file, and the folders that lead to it; an earlier one stays until this one is whole. */
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

    /** Writes a text. */
    public static void write(Path file, String text) throws IOException {
        write(file, beside -> Files.writeString(beside, text, StandardCharsets.UTF_8));
    }

    static Path beside(Path file) {
        return file.resolveSibling(file.getFileName() + UNFINISHED);
    }
}
