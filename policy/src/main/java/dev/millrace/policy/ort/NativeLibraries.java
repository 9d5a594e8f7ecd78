package dev.millrace.policy.ort;

import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
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
import java.util.ArrayList;
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
 * <p>The jar has them inside, 27 MB, on a GPU ten times as much. They are unpacked once, into a folder that is named after what is in
 * it, beneath {@code millrace} in the user's cache ({@code XDG_CACHE_HOME}, or {@code .cache} in the home folder); where that cannot
 * be written, in the temporary folder. A file that a kill cut off is never used: files appear under their names whole, and are
 * compared with the jar's checksums.
 */
final class NativeLibraries {
    private static final System.Logger LOG = System.getLogger(NativeLibraries.class.getName());
    /** Names a folder that has the libraries already. */
    private static final String PATH = "onnxruntime.native.path";

    static final String PARTIAL = ".partial";
    private static final String PROVIDERS = "onnxruntime_providers_";
    /** Where jars have them: Microsoft's for the CPU, and the one for CUDA 13. */
    private static final List<String> INSIDE =
            List.of("/ai/onnxruntime/native/%s/", "/org/bytedeco/onnxruntime/linux-x86_64-gpu/");

    private static final Duration LEFT_AFTER = Duration.ofMinutes(1);

    private final String platform;
    private final List<Path> roots;

    /** @param roots folders to try, in order */
    NativeLibraries(String platform, List<Path> roots) {
        this.platform = platform;
        this.roots = roots;
    }

    /**
     * The runtime's library, with its providers beside it.
     *
     * @throws IllegalStateException if there is none for this platform
     */
    static synchronized Path runtime() {
        String named = System.getProperty(PATH);
        String platform = platform()
                .orElseThrow(() -> new IllegalStateException("ONNX Runtime has no library for "
                        + System.getProperty("os.name") + " on " + System.getProperty("os.arch")));
        Path folder = named != null ? Path.of(named) : new NativeLibraries(platform, CacheFolders.roots()).folder();
        return names(false).stream()
                .map(folder::resolve)
                .filter(Files::isRegularFile)
                .findFirst()
                .orElseThrow(() -> new IllegalStateException(
                        "there is no " + names(false).get(0) + " in " + folder + ", which " + PATH + " names"));
    }

    /** What the library may be called, and with its providers. */
    private static List<String> names(boolean all) {
        List<String> names = new ArrayList<>();
        names.add(System.mapLibraryName("onnxruntime"));
        names.add(System.mapLibraryName("onnxruntime") + ".1");
        if (all) {
            names.add(System.mapLibraryName(PROVIDERS + "shared"));
            names.add(System.mapLibraryName(PROVIDERS + "cuda"));
        }
        return names;
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

    /** The folder with all libraries. */
    Path folder() {
        try {
            Map<String, URL> libraries = libraries();
            if (libraries.isEmpty()) {
                throw new IllegalStateException("no jar on the class path has ONNX Runtime's library for " + platform);
            }
            Map<String, Long> checksums = new LinkedHashMap<>();
            for (Map.Entry<String, URL> library : libraries.entrySet()) {
                checksums.put(library.getKey(), checksum(library.getValue()));
            }
            String name = "onnxruntime-" + platform + "-" + Long.toHexString(checksums.hashCode() & 0xffffffffL);
            IOException last = null;
            for (Path root : roots) {
                try {
                    Path folder = root.resolve(name);
                    Files.createDirectories(folder);
                    requireOwn(root);
                    requireOwn(folder);
                    unpack(folder, libraries, checksums);
                    return folder;
                } catch (IOException | UnsupportedOperationException e) {
                    last = new IOException(root + " cannot keep them: " + e, e);
                    LOG.log(Level.DEBUG, "ONNX Runtime''s libraries: {0}", last.getMessage());
                }
            }
            throw last == null ? new IOException("no folder is named for them") : last;
        } catch (IOException e) {
            throw new IllegalStateException(
                    "ONNX Runtime's libraries can be kept in none of " + roots
                            + "; let one of them be written, or name a" + " folder that has them with -D" + PATH + ": "
                            + e.getMessage(),
                    e);
        }
    }

    /** Those that the jar has, by their files' names. */
    private Map<String, URL> libraries() {
        Map<String, URL> found = new LinkedHashMap<>();
        for (String inside : INSIDE) {
            for (String file : names(true)) {
                URL url = NativeLibraries.class.getResource(String.format(Locale.ROOT, inside, platform) + file);
                if (url != null) {
                    found.putIfAbsent(file, url);
                }
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
}
