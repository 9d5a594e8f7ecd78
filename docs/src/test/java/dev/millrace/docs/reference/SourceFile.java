package dev.millrace.docs.reference;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * A Java source of the repository, found by its class, to read its Javadoc.
 *
 * @param path absolute
 * @param text all of it
 */
record SourceFile(Path path, String text) {
    private static final Path REPOSITORY = Path.of("..").toAbsolutePath().normalize();
    private static final Map<String, Path> BY_NAME = index();

    /** The source of a class. */
    static SourceFile of(Class<?> type) {
        String name = type.getName().replaceAll("\\$.*", "").replace('.', '/') + ".java";
        Path path = BY_NAME.get(name);
        if (path == null) {
            throw new AssertionError("no source of " + type);
        }
        return new SourceFile(path, read(path));
    }

    /** All sources of a package, by simple name. */
    static List<SourceFile> inPackage(String name) {
        return below(name).stream()
                .filter(source -> source.path().getParent().endsWith(name.replace('.', '/')))
                .toList();
    }

    /** All sources of a package and the packages below, by name. */
    static List<SourceFile> below(String name) {
        String folder = name.replace('.', '/') + "/";
        return BY_NAME.entrySet().stream()
                .filter(entry -> entry.getKey().startsWith(folder))
                .sorted(Map.Entry.comparingByKey())
                .map(entry -> new SourceFile(entry.getValue(), read(entry.getValue())))
                .toList();
    }

    /** From a page under {@code docs/reference}. */
    String link() {
        return "../../" + REPOSITORY.relativize(path).toString().replace('\\', '/');
    }

    /** File name without its ending. */
    String simpleName() {
        return path.getFileName().toString().replace(".java", "");
    }

    boolean isPublic() {
        return text.contains("\npublic ");
    }

    private static Map<String, Path> index() {
        try (Stream<Path> files = Files.walk(REPOSITORY, 16)) {
            return files.filter(file -> file.toString().endsWith(".java"))
                    .filter(file -> file.toString().replace('\\', '/').contains("/src/main/java/"))
                    .collect(Collectors.toMap(
                            file -> file.toString().replace('\\', '/').replaceFirst(".*/src/main/java/", ""),
                            file -> file,
                            (one, other) -> one));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static String read(Path path) {
        try {
            return Files.readString(path);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
