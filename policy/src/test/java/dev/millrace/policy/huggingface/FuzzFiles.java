package dev.millrace.policy.huggingface;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** Folder of the fuzzed file, shared by all inputs, since there are thousands a second. */
final class FuzzFiles {
    private static Path folder = Path.of("");

    private FuzzFiles() {}

    static synchronized Path folder() throws IOException {
        if (folder.toString().isEmpty()) {
            folder = Files.createTempDirectory(Path.of("target"), "fuzz");
        }
        try (var left = Files.newDirectoryStream(folder)) {
            for (Path file : left) {
                Files.delete(file);
            }
        }
        return folder;
    }
}
