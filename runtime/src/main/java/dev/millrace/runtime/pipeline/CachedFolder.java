package dev.millrace.runtime.pipeline;

import dev.millrace.log.ContentTopic;
import dev.millrace.runtime.RefusedRequestException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;

/**
 * A folder of given files in the user's cache, named by their hashes. It is created atomically and verified before use;
 * concurrent creators are safe.
 */
final class CachedFolder {
    private final List<Path> roots;
    private final Map<String, String> hashes;
    private final String name;

    /** @param roots to try, in order */
    CachedFolder(List<Path> roots, Map<String, String> hashes) {
        this.roots = roots;
        this.hashes = hashes;
        StringBuilder all = new StringBuilder();
        hashes.forEach(
                (file, hash) -> all.append(hash).append("  ").append(file).append('\n'));
        this.name = "files-"
                + ContentTopic.hash(all.toString().getBytes(StandardCharsets.UTF_8))
                        .substring(0, 32);
    }

    /** Returns the folder if it exists with exactly these contents. */
    Optional<Path> find() {
        return roots.stream()
                .map(root -> root.resolve(name))
                .filter(this::isWhole)
                .findFirst();
    }

    /**
     * Makes it.
     *
     * @throws RefusedRequestException if no root can hold it
     */
    Path make(Map<String, byte[]> contents) {
        String why = "";
        for (Path root : roots) {
            try {
                return make(root, contents);
            } catch (IOException e) {
                why = e.toString();
            }
        }
        throw new RefusedRequestException("the run's files cannot be put into a cache folder, neither of "
                + roots.stream().map(Path::toString).toList() + " can be written (" + why
                + "); make one writable, or name another with XDG_CACHE_HOME");
    }

    private Path make(Path root, Map<String, byte[]> contents) throws IOException {
        Files.createDirectories(root);
        Path partial = Files.createTempDirectory(root, "." + name + ".");
        try {
            for (Map.Entry<String, String> file : hashes.entrySet()) {
                Files.write(partial.resolve(file.getKey()), contents.get(file.getValue()));
            }
            Path folder = root.resolve(name);
            if (Files.exists(folder) && !isWhole(folder)) {
                remove(folder); // somebody changed it
            }
            try {
                Files.move(partial, folder, StandardCopyOption.ATOMIC_MOVE);
            } catch (FileSystemException e) {
                if (!isWhole(folder)) { // otherwise another process has created it meanwhile
                    throw e;
                }
            }
            return folder;
        } finally {
            if (Files.exists(partial)) {
                remove(partial);
            }
        }
    }

    private static void remove(Path folder) throws IOException {
        try (Stream<Path> files = Files.list(folder)) {
            for (Path file : files.toList()) {
                Files.delete(file);
            }
        }
        Files.delete(folder);
    }

    private boolean isWhole(Path folder) {
        try {
            if (!Files.isDirectory(folder)) {
                return false;
            }
            try (Stream<Path> files = Files.list(folder)) {
                if (files.count() != hashes.size()) {
                    return false;
                }
            }
            for (Map.Entry<String, String> file : hashes.entrySet()) {
                Path path = folder.resolve(file.getKey());
                if (!Files.isRegularFile(path)
                        || !ContentTopic.hash(Files.readAllBytes(path)).equals(file.getValue())) {
                    return false;
                }
            }
            return true;
        } catch (IOException e) {
            return false;
        }
    }
}
