package dev.millrace.policy.session;

import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.lang.System.Logger.Level;
import java.net.JarURLConnection;
import java.net.URL;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.PosixFileAttributes;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.zip.CRC32;
import java.util.zip.CheckedInputStream;

/**
 * ONNX Runtime's native libraries in a folder that all processes of a user share.
 *
 * <p>Left to itself the runtime unpacks them, 27 MB, into the temporary folder at every start, and a process that is killed leaves its
 * copy behind. Here they are unpacked once, into a folder that is named after what is in it, beneath {@code millrace} in the user's
 * cache ({@code XDG_CACHE_HOME}, or {@code .cache} in the home folder); where that cannot be written, in the temporary folder. A file
 * that a kill cut off is never used: files appear under their names whole, and are compared with the jar's checksums.
 */
final class NativeLibraries {
    private static final System.Logger LOG = System.getLogger(NativeLibraries.class.getName());
    /** The runtime's own: where it finds its libraries, instead of unpacking them. */
    static final String PATH = "onnxruntime.native.path";

    static final String PARTIAL = ".partial";
    private static final List<String> NAMES =
            List.of("onnxruntime", "onnxruntime4j_jni", "onnxruntime_providers_shared", "onnxruntime_providers_cuda");
    /** Made by the runtime at every start, whether it unpacks anything or not. */
    private static final String LEFT = "onnxruntime-java";

    private static final Duration LEFT_AFTER = Duration.ofMinutes(1);

    private final String platform;
    private final List<Path> roots;

    /** @param roots folders to try, in order */
    NativeLibraries(String platform, List<Path> roots) {
        this.platform = platform;
        this.roots = roots;
    }

    /** Makes the runtime use the shared folder, unless somebody has named another, or there is none that can be used. */
    static synchronized void share() {
        Optional<String> platform = platform();
        if (System.getProperty(PATH) != null || platform.isEmpty()) {
            return;
        }
        new NativeLibraries(platform.get(), CacheFolders.roots())
                .folder()
                .ifPresent(folder -> System.setProperty(PATH, folder.toString()));
        removeLeft(Path.of(System.getProperty("java.io.tmpdir")));
    }

    /** As the runtime's jar calls it. */
    private static Optional<String> platform() {
        String system = System.getProperty("os.name", "").toLowerCase(Locale.ROOT);
        String os = system.contains("mac")
                ? "osx"
                : system.contains("linux") ? "linux" : system.contains("win") ? "win" : "";
        String arch = Map.of("amd64", "x64", "x86_64", "x64", "aarch64", "aarch64")
                .getOrDefault(System.getProperty("os.arch", ""), "");
        return os.isEmpty() || arch.isEmpty() ? Optional.empty() : Optional.of(os + "-" + arch);
    }

    /** The folder with all libraries; empty if none of the roots can be used, or the runtime is not in a jar. */
    Optional<Path> folder() {
        try {
            Map<String, URL> libraries = libraries();
            if (libraries.isEmpty()) {
                return Optional.empty();
            }
            Map<String, Long> checksums = new LinkedHashMap<>();
            for (Map.Entry<String, URL> library : libraries.entrySet()) {
                checksums.put(library.getKey(), checksum(library.getValue()));
            }
            String name = "onnxruntime-" + platform + "-" + Long.toHexString(checksums.hashCode() & 0xffffffffL);
            for (Path root : roots) {
                try {
                    Path folder = root.resolve(name);
                    Files.createDirectories(folder);
                    requireOwn(root);
                    requireOwn(folder);
                    unpack(folder, libraries, checksums);
                    return Optional.of(folder);
                } catch (IOException | UnsupportedOperationException e) {
                    LOG.log(Level.DEBUG, "ONNX Runtime''s libraries cannot be kept in {0}: {1}", root, e.toString());
                }
            }
        } catch (IOException e) {
            LOG.log(Level.DEBUG, "ONNX Runtime''s libraries cannot be read: {0}", e.toString());
        }
        LOG.log(
                Level.WARNING,
                "ONNX Runtime''s libraries can be kept in none of {0}; a process that is killed leaves its copy of them in {1}",
                roots,
                System.getProperty("java.io.tmpdir"));
        return Optional.empty();
    }

    /** Those that the jar has, by their files' names. */
    private Map<String, URL> libraries() {
        Map<String, URL> found = new LinkedHashMap<>();
        for (String library : NAMES) {
            String file = System.mapLibraryName(library).replace("jnilib", "dylib");
            URL url = NativeLibraries.class.getResource("/ai/onnxruntime/native/" + platform + "/" + file);
            if (url != null) {
                found.put(file, url);
            }
        }
        return found;
    }

    private static long checksum(URL library) throws IOException {
        if (library.openConnection() instanceof JarURLConnection jar) {
            long checksum = jar.getJarEntry().getCrc();
            if (checksum >= 0) {
                return checksum;
            }
        }
        try (InputStream in = library.openStream()) {
            return checksum(in);
        }
    }

    private static long checksum(InputStream in) throws IOException {
        CheckedInputStream checked = new CheckedInputStream(in, new CRC32());
        byte[] buffer = new byte[1 << 20];
        while (checked.read(buffer) >= 0) {
            // for the sum
        }
        return checked.getChecksum().getValue();
    }

    private static boolean isThere(Path file, long checksum) throws IOException {
        if (!Files.isRegularFile(file, LinkOption.NOFOLLOW_LINKS)) {
            return false;
        }
        try (InputStream in = new FileInputStream(file.toFile())) {
            return checksum(in) == checksum;
        }
    }

    /** What another user could write would run with our rights. */
    private static void requireOwn(Path folder) throws IOException {
        if (!Files.getFileStore(folder).supportsFileAttributeView("posix")) {
            return;
        }
        PosixFileAttributes attributes =
                Files.readAttributes(folder, PosixFileAttributes.class, LinkOption.NOFOLLOW_LINKS);
        String owner = attributes.owner().getName();
        if (!attributes.isDirectory() || !owner.equals(System.getProperty("user.name"))) {
            throw new IOException(folder + " belongs to " + owner);
        }
        if (attributes.permissions().contains(PosixFilePermission.OTHERS_WRITE)
                || attributes.permissions().contains(PosixFilePermission.GROUP_WRITE)) {
            Files.setPosixFilePermissions(folder, PosixFilePermissions.fromString("rwx------"));
        }
    }

    private static void unpack(Path folder, Map<String, URL> libraries, Map<String, Long> checksums)
            throws IOException {
        if (areThere(folder, checksums)) {
            return;
        }
        removeHalves(folder);
        for (Map.Entry<String, URL> library : libraries.entrySet()) {
            Path partial =
                    Files.createTempFile(folder, library.getKey(), PARTIAL); // nobody else's, who may do the same now
            try (InputStream in = library.getValue().openStream()) {
                Files.copy(in, partial, StandardCopyOption.REPLACE_EXISTING);
            }
            Files.move(
                    partial,
                    folder.resolve(library.getKey()),
                    StandardCopyOption.ATOMIC_MOVE,
                    StandardCopyOption.REPLACE_EXISTING);
        }
        if (!areThere(folder, checksums)) {
            throw new IOException("what was unpacked is not what the jar has");
        }
    }

    /** Of those who were killed while they unpacked. */
    private static void removeHalves(Path folder) throws IOException {
        Instant before = Instant.now().minus(LEFT_AFTER);
        try (DirectoryStream<Path> halves = Files.newDirectoryStream(folder, "*" + PARTIAL)) {
            for (Path half : halves) {
                if (Files.getLastModifiedTime(half).toInstant().isBefore(before)) {
                    Files.deleteIfExists(half);
                }
            }
        }
    }

    private static boolean areThere(Path folder, Map<String, Long> checksums) throws IOException {
        for (Map.Entry<String, Long> file : checksums.entrySet()) {
            if (!isThere(folder.resolve(file.getKey()), file.getValue())) {
                return false;
            }
        }
        return true;
    }

    /** Removes the empty folders that killed processes left behind; folders that are not empty stay. */
    static void removeLeft(Path temporary) {
        Instant before = Instant.now().minus(LEFT_AFTER);
        try (DirectoryStream<Path> left = Files.newDirectoryStream(temporary, LEFT + "*")) {
            for (Path folder : left) {
                if (Files.isDirectory(folder, LinkOption.NOFOLLOW_LINKS)
                        && Files.getLastModifiedTime(folder).toInstant().isBefore(before)) {
                    removeIfEmpty(folder);
                }
            }
        } catch (IOException | UncheckedIOException e) {
            LOG.log(Level.DEBUG, "the temporary folder cannot be looked through: {0}", e.toString());
        }
    }

    private static void removeIfEmpty(Path folder) {
        try {
            Files.delete(folder);
        } catch (IOException e) {
            LOG.log(Level.TRACE, "{0} is in use, or somebody else's", folder);
        }
    }
}
