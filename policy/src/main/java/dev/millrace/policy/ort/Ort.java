package dev.millrace.policy.ort;

import com.sun.jna.Function;
import com.sun.jna.Memory;
import com.sun.jna.Native;
import com.sun.jna.NativeLibrary;
import com.sun.jna.Pointer;
import com.sun.jna.ptr.IntByReference;
import com.sun.jna.ptr.PointerByReference;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/**
 * ONNX Runtime's C API, called in place: the runtime's Java API has neither values on a device nor bindings.
 *
 * <p>The API is a table of functions to which new ones are only appended; a function is known by its place there. The numbers are
 * those of {@code onnxruntime_c_api.h}. One environment for the process, never released. Thread-safe.
 */
public final class Ort {
    /** The oldest table that has all of the functions here in it, and the oldest runtime that was tried. */
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

    /** ONNX Runtime's version. */
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

    /** @throws OrtException with what the runtime says */
    void call(int function, @Nullable Object... arguments) {
        @Nullable Pointer status = function(function).invokePointer(arguments);
        if (status != null) {
            String message = function(GET_ERROR_MESSAGE).invokeString(new Object[] {status}, false);
            release(RELEASE_STATUS, status);
            throw new OrtException(message);
        }
    }

    /** A call whose last argument is where it writes the handle of what it made. */
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

    /** A text of C's, kept for ever: names of inputs, of outputs and of settings. */
    Pointer text(String text) {
        return texts.computeIfAbsent(text, absent -> {
            byte[] bytes = absent.getBytes(StandardCharsets.UTF_8);
            Memory memory = new Memory(bytes.length + 1L);
            memory.write(0, bytes, 0, bytes.length);
            memory.setByte(bytes.length, (byte) 0);
            return memory;
        });
    }

    /** Handles one behind the other. */
    static Memory array(List<Pointer> handles) {
        Memory memory = new Memory(Math.max(1, handles.size()) * (long) Native.POINTER_SIZE);
        for (int i = 0; i < handles.size(); i++) {
            memory.setPointer((long) i * Native.POINTER_SIZE, handles.get(i));
        }
        return memory;
    }
}
