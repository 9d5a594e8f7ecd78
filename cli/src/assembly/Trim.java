import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.FileSystem;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Arrays;
import java.util.List;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/** Copies jars without the native libraries of platforms that Millrace does not support, and without debugging symbols. */
final class Trim {
    private static final Pattern NATIVE = Pattern.compile(".*\\.(so|dll|dylib|jnilib|a)|.*\\.dSYM/.*");
    private static final Pattern SUPPORTED =
            Pattern.compile("(?i).*(linux[-/]?(64|x64|x86[-_]64|amd64|aarch64|arm64)|(osx|darwin|mac)[-/]?(aarch64|arm64))[/.].*");

    private Trim() {}

    /** @param arguments folder of the jars, folder of the copies, then the jars' names without their versions */
    public static void main(String[] arguments) throws IOException {
        Path from = Path.of(arguments[0]);
        Path to = Files.createDirectories(Path.of(arguments[1]));
        try (DirectoryStream<Path> old = Files.newDirectoryStream(to)) {
            for (Path jar : old) {
                Files.delete(jar);
            }
        }
        for (String name : Arrays.asList(arguments).subList(2, arguments.length)) {
            try (DirectoryStream<Path> jars = Files.newDirectoryStream(from, name + "-[0-9]*.jar")) {
                for (Path jar : jars) {
                    trim(Files.copy(jar, to.resolve(jar.getFileName()), StandardCopyOption.COPY_ATTRIBUTES));
                }
            }
        }
    }

    private static void trim(Path jar) throws IOException {
        try (FileSystem entries = FileSystems.newFileSystem(jar);
                Stream<Path> all = Files.walk(entries.getPath("/"))) {
            List<Path> dropped = all.filter(Files::isRegularFile)
                    .filter(entry -> NATIVE.matcher(entry.toString()).matches())
                    .filter(entry -> entry.toString().contains(".dSYM/")
                            || !SUPPORTED.matcher(entry.toString()).matches())
                    .toList();
            if (dropped.isEmpty()) {
                throw new IOException("cannot trim " + jar + ": it has no native library to drop; leave it out of the list");
            }
            for (Path entry : dropped) {
                Files.delete(entry);
            }
        }
    }
}
