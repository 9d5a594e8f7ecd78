package dev.millrace.policy.ort;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** Candidate folders for a user's cache. Readers must verify the files there, which may be removed at any time. */
public final class CacheFolders {
    private CacheFolders() {}

    /**
     * Returns the folders to try, the best first: {@code millrace} in {@code XDG_CACHE_HOME} or in {@code .cache} of
     * the home folder, then a per-user folder in the temporary folder. They need not exist.
     */
    public static List<Path> roots() {
        List<Path> roots = new ArrayList<>();
        String cache = System.getenv("XDG_CACHE_HOME");
        String home = System.getProperty("user.home", "");
        if (cache != null && cache.startsWith("/")) {
            roots.add(Path.of(cache, "millrace"));
        } else if (!home.isEmpty() && Files.isDirectory(Path.of(home))) {
            roots.add(Path.of(home, ".cache", "millrace"));
        }
        roots.add(Path.of(
                System.getProperty("java.io.tmpdir"), "millrace-" + System.getProperty("user.name", "unknown")));
        return roots;
    }
}
