package dev.millrace.policy.ort;

import com.sun.jna.Function;
import com.sun.jna.Memory;
import com.sun.jna.Native;
import com.sun.jna.NativeLibrary;
import com.sun.jna.Pointer;
import com.sun.jna.ptr.IntByReference;
import com.sun.jna.ptr.PointerByReference;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.lang.System.Logger.Level;
import java.net.JarURLConnection;
import java.net.URL;
import java.nio.charset.StandardCharsets;
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
import java.util.concurrent.ConcurrentHashMap;
import java.util.zip.CRC32;
import java.util.zip.CheckedInputStream;
import org.jspecify.annotations.Nullable;

/**
 * Binding of ONNX Runtime's C API: the runtime's Java API has neither device values nor I/O binding.
 *
 * <p>The API is an append-only table of functions, addressed by index. The numbers are
 * those of {@code onnxruntime_c_api.h}. One environment for the process, never released. Thread-safe.
 */
public final class Ort {
    /** The oldest API version with all functions used here, and the oldest tested runtime. */
    private static final int API_VERSION = 28;

    private static final int LOGS_ERRORS = 3;

    static final int GET_ERROR_MESSAGE = 2;
    static final int CREATE_ENV = 3;
    static final int DISABLE_TELEMETRY = 6;
    static final int CREATE_SESSION_FROM_ARRAY = 8;
    static final int CREATE_SESSION_OPTIONS = 10;
    static final int SET_EXECUTION_MODE = 13;
    static final int ENABLE_MEMORY_PATTERN = 16;
    static final int DISABLE_MEMORY_PATTERN = 17;
    static final int ENABLE_CPU_ARENA = 18;
    static final int DISABLE_CPU_ARENA = 19;
    static final int SET_INTRA_OP_THREADS = 24;
    static final int SET_INTER_OP_THREADS = 25;
    static final int SESSION_OUTPUT_COUNT = 31;
    static final int SESSION_OUTPUT_NAME = 37;
    static final int TENSOR_WITH_DATA = 49;
    static final int TENSOR_DATA = 51;
    static final int TENSOR_ELEMENT_TYPE = 60;
    static final int TENSOR_DIMENSION_COUNT = 61;
    static final int TENSOR_DIMENSIONS = 62;
    static final int TENSOR_TYPE_AND_SHAPE = 65;
    static final int CREATE_MEMORY_INFO = 68;
    static final int ALLOCATOR_FREE = 76;
    static final int DEFAULT_ALLOCATOR = 78;
    static final int RELEASE_STATUS = 93;
    static final int RELEASE_SESSION = 95;
    static final int RELEASE_VALUE = 96;
    static final int RELEASE_TYPE_AND_SHAPE = 99;
    static final int RELEASE_SESSION_OPTIONS = 100;
    static final int AVAILABLE_PROVIDERS = 125;
    static final int RELEASE_PROVIDERS = 126;
    static final int ADD_CONFIG_ENTRY = 130;
    static final int RUN_WITH_BINDING = 133;
    static final int CREATE_BINDING = 134;
    static final int RELEASE_BINDING = 135;
    static final int BIND_INPUT = 136;
    static final int BIND_OUTPUT = 137;
    static final int BIND_OUTPUT_TO_DEVICE = 138;
    static final int BOUND_OUTPUT_VALUES = 140;
    static final int APPEND_CUDA = 204;
    static final int CREATE_CUDA_OPTIONS = 205;
    static final int UPDATE_CUDA_OPTIONS = 206;
    static final int RELEASE_CUDA_OPTIONS = 208;
    static final int ADD_EXTERNAL_INITIALIZERS = 210;
    static final int SET_DETERMINISTIC_COMPUTE = 273;

    private final Map<Integer, Function> functions = new ConcurrentHashMap<>();
    private final Map<String, Pointer> texts = new ConcurrentHashMap<>();
    private final NativeLibrary runtime; // closed with its last reference
    private final Pointer table;
    private final Pointer environment;
    private final String version;

    private static final class Held {
        private static final Ort INSTANCE = new Ort(QuietRuntime.library());
    }

    private Ort(Path library) {
        this.runtime = NativeLibrary.getInstance(library.toString());
        Pointer base = runtime.getFunction("OrtGetApiBase").invokePointer(new Object[0]);
        this.version =
                Function.getFunction(base.getPointer(Native.POINTER_SIZE)).invokeString(new Object[0], false);
        @Nullable Pointer found = Function.getFunction(base.getPointer(0)).invokePointer(new Object[] {API_VERSION});
        if (found == null) {
            throw new OrtException("ONNX Runtime " + version + " (" + library + ") is older than 1." + API_VERSION
                    + ", the oldest that can be used");
        }
        this.table = found;
        this.environment = create(CREATE_ENV, LOGS_ERRORS, text("millrace"));
        call(DISABLE_TELEMETRY, environment);
    }

    static Ort get() {
        return Held.INSTANCE;
    }

    public static String version() {
        return get().version;
    }

    /** The names of the providers that are compiled into the runtime. */
    public static List<String> providers() {
        Ort ort = get();
        PointerByReference names = new PointerByReference();
        IntByReference count = new IntByReference();
        ort.call(AVAILABLE_PROVIDERS, names, count);
        List<String> providers = new ArrayList<>();
        for (int i = 0; i < count.getValue(); i++) {
            providers.add(
                    names.getValue().getPointer((long) i * Native.POINTER_SIZE).getString(0));
        }
        ort.call(RELEASE_PROVIDERS, names.getValue(), count.getValue());
        return providers;
    }

    Pointer environment() {
        return environment;
    }

    /** @throws OrtException with the runtime's message */
    void call(int function, @Nullable Object... arguments) {
        @Nullable Pointer status = function(function).invokePointer(arguments);
        if (status != null) {
            String message = function(GET_ERROR_MESSAGE).invokeString(new Object[] {status}, false);
            release(RELEASE_STATUS, status);
            throw new OrtException(message);
        }
    }

    /** A call whose last argument receives a new handle. */
    Pointer create(int function, @Nullable Object... arguments) {
        PointerByReference made = new PointerByReference();
        @Nullable Object[] all = new @Nullable Object[arguments.length + 1];
        System.arraycopy(arguments, 0, all, 0, arguments.length);
        all[arguments.length] = made;
        call(function, all);
        return made.getValue();
    }

    void release(int function, Pointer handle) {
        function(function).invokeVoid(new Object[] {handle});
    }

    private Function function(int place) {
        return functions.computeIfAbsent(
                place, absent -> Function.getFunction(table.getPointer((long) absent * Native.POINTER_SIZE)));
    }

    /** A C string that is never freed: names of inputs, outputs and settings. */
    Pointer text(String text) {
        return texts.computeIfAbsent(text, absent -> {
            byte[] bytes = absent.getBytes(StandardCharsets.UTF_8);
            Memory memory = new Memory(bytes.length + 1L);
            memory.write(0, bytes, 0, bytes.length);
            memory.setByte(bytes.length, (byte) 0);
            return memory;
        });
    }

    /** An array of handles. */
    static Memory array(List<Pointer> handles) {
        Memory memory = new Memory(Math.max(1, handles.size()) * (long) Native.POINTER_SIZE);
        for (int i = 0; i < handles.size(); i++) {
            memory.setPointer((long) i * Native.POINTER_SIZE, handles.get(i));
        }
        return memory;
    }

    /**
     * Finds ONNX Runtime's library and checks that loading it is safe.
     *
     * <p>Since 1.29 the library has a telemetry client on Linux. It copies the process's command line and crashes the
     * process without a message if that has more than about 4000 bytes, as with a long class path. The variable {@value
     * #VARIABLE} disables it; set it before the process starts.
     */
    static final class QuietRuntime {
        static final String VARIABLE = "ORT_DISABLE_TELEMETRY";
        /** 3157 bytes worked, 4057 crashed the process. */
        static final int MOST_BYTES = 3000;

        private static final Path COMMAND_LINE = Path.of("/proc/self/cmdline");

        private QuietRuntime() {}

        /** @throws IllegalStateException if using it would crash the process */
        static Path library() {
            require(System.getenv(VARIABLE), commandLineBytes());
            return NativeLibraries.runtime();
        }

        /** @param disabled the variable's value; null where it is not set */
        static void require(@Nullable String disabled, long commandLineBytes) {
            boolean on = disabled == null || disabled.isEmpty() || disabled.equals("0");
            if (on && commandLineBytes > MOST_BYTES) {
                throw new IllegalStateException(
                        "the command line of this process has " + commandLineBytes + " bytes, and above " + MOST_BYTES
                                + " ONNX Runtime's telemetry may end it without a word; start it with " + VARIABLE
                                + "=1 in its environment, as the launcher does, or pass the class path as CLASSPATH");
            }
        }

        /** 0 without such a file; the library reads the file if it exists. */
        private static long commandLineBytes() {
            try {
                return Files.exists(COMMAND_LINE) ? Files.readAllBytes(COMMAND_LINE).length : 0;
            } catch (IOException e) {
                return 0;
            }
        }
    }

    /**
     * ONNX Runtime's native libraries in a folder that all processes of a user share.
     *
     * <p>The jar contains 27 MB of them, ten times as much for a GPU. They are unpacked once, into a folder named after
     * their contents, below {@code millrace} in the user's cache ({@code XDG_CACHE_HOME}, or {@code .cache} in the home
     * folder); where that cannot be written, in the temporary folder. Partial files of a killed process are never used:
     * files are renamed when complete, and compared with the jar's checksums.
     */
    static final class NativeLibraries {
        private static final System.Logger LOG = System.getLogger(NativeLibraries.class.getName());
        /** Names a folder that has the libraries already. */
        private static final String PATH = "onnxruntime.native.path";

        static final String PARTIAL = ".partial";
        private static final String PROVIDERS = "onnxruntime_providers_";
        /** Locations in the jars: Microsoft's for the CPU, and the one for CUDA 13. */
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
         * The runtime's library, with its providers in the same folder.
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

        /** File names of the library and its providers. */
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

        Path folder() {
            try {
                Map<String, URL> libraries = libraries();
                if (libraries.isEmpty()) {
                    throw new IllegalStateException(
                            "no jar on the class path has ONNX Runtime's library for " + platform);
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
                                + "; let one of them be written, or name a folder that has them with -D" + PATH
                                + ": "
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

        /** Refuses a folder that another user could write, whose code would run with our rights. */
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
                Path partial = Files.createTempFile(
                        folder, library.getKey(), PARTIAL); // not another process's, which may be unpacking now
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

        /** Leftovers of killed processes. */
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
}
