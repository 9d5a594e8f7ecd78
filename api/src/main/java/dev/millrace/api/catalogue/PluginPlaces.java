package dev.millrace.api.catalogue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;

/**
 * Jars of a plug-in path: a jar is one plug-in; a folder contains plug-ins, each a jar or a subfolder with the jars of
 * one plug-in.
 */
final class PluginPlaces {

    /**
     * One plug-in's files.
     *
     * @param path the jar or the folder
     * @param jars with its classes
     */
    record Place(Path path, List<Path> jars) {}

    private static final int MOST_ENTRIES = 1000;

    private PluginPlaces() {}

    /**
     * @param paths jars and folders; duplicates count once
     * @throws PluginException if a path does not exist or is neither
     */
    static List<Place> of(List<Path> paths) {
        Set<Place> places = new LinkedHashSet<>();
        for (Path path : paths) {
            try {
                Path real = path.toRealPath();
                if (!Files.isDirectory(real)) {
                    requireFile(real);
                    places.add(new Place(real, List.of(real)));
                    continue;
                }
                for (Path entry : entries(real)) {
                    if (Files.isDirectory(entry)) {
                        List<Path> jars = entries(entry).stream()
                                .filter(PluginPlaces::isJar)
                                .toList();
                        if (jars.isEmpty()) {
                            throw new PluginException(
                                    "the plug-in folder " + entry + " holds no jar; put the plug-in's jar and"
                                            + " what it needs there, or remove the folder");
                        }
                        jars.forEach(PluginPlaces::requireFile);
                        places.add(new Place(entry, jars));
                    } else if (isJar(entry)) {
                        requireFile(entry);
                        places.add(new Place(entry, List.of(entry)));
                    }
                }
            } catch (IOException e) {
                throw new PluginException("there is no plug-in at " + path + "; name a jar, or a folder of jars", e);
            }
        }
        return new ArrayList<>(places);
    }

    /** Opening a pipe blocks until another process writes to it, and a device may have no end. */
    private static void requireFile(Path jar) {
        if (!Files.isRegularFile(jar)) {
            throw new PluginException(
                    jar + " is not a regular file, so it is no plug-in; name a jar, or a folder of jars");
        }
    }

    private static boolean isJar(Path path) {
        return path.getFileName().toString().endsWith(".jar");
    }

    private static List<Path> entries(Path folder) throws IOException {
        try (Stream<Path> entries = Files.list(folder)) {
            List<Path> sorted = new ArrayList<>();
            List<Path> found = entries.limit(MOST_ENTRIES + 1L).sorted().toList();
            if (found.size() > MOST_ENTRIES) {
                throw new PluginException(folder + " holds more than " + MOST_ENTRIES
                        + " files, so it is no folder of plug-ins; name a jar, or a folder of jars");
            }
            for (Path entry : found) {
                sorted.add(entry.toRealPath());
            }
            return sorted;
        }
    }
}
