package dev.millrace.policy.ort;

import com.sun.jna.Memory;
import com.sun.jna.Native;
import com.sun.jna.Pointer;
import com.sun.jna.ptr.LongByReference;
import com.sun.jna.ptr.PointerByReference;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.Set;

/**
 * A compiled graph. Any number of threads may run it at once, each with a {@link Binding} of its own; close it after the last
 * run.
 */
public final class Session implements AutoCloseable {
    private static final int SEQUENTIAL = 0;

    private final Pointer session;
    private final List<String> outputs;
    private boolean closed;

    /**
     * How a graph is compiled.
     *
     * @param cuda the device's ordinal; empty for the CPU
     * @param tf32 whether products of float32 on the device may use TF32
     * @param plansMemory whether memory is planned for each input size
     * @param cpuArena whether freed memory of the host is kept for later calls
     * @param initializers by name, each declared in the graph as external; read while the graph is compiled
     */
    public record Options(
            OptionalInt cuda,
            boolean tf32,
            int threads,
            boolean plansMemory,
            boolean cpuArena,
            Map<String, String> entries,
            Map<String, Tensor> initializers) {}

    private Session(Pointer session) {
        this.session = session;
        this.outputs = outputs(session);
    }

    /** @throws OrtException if the graph is no valid one, or the device or its libraries are not there */
    public static Session compile(byte[] model, Options options) {
        Ort ort = Ort.get();
        Pointer configured = ort.create(Ort.CREATE_SESSION_OPTIONS);
        try {
            configure(ort, configured, options);
            try (Memory bytes = new Memory(model.length)) {
                bytes.write(0, model, 0, model.length);
                return new Session(ort.create(
                        Ort.CREATE_SESSION_FROM_ARRAY, ort.environment(), bytes, (long) model.length, configured));
            }
        } finally {
            ort.release(Ort.RELEASE_SESSION_OPTIONS, configured);
        }
    }

    private static void configure(Ort ort, Pointer into, Options options) {
        ort.call(Ort.SET_INTRA_OP_THREADS, into, options.threads());
        ort.call(Ort.SET_INTER_OP_THREADS, into, 1);
        ort.call(Ort.SET_EXECUTION_MODE, into, SEQUENTIAL);
        ort.call(Ort.SET_DETERMINISTIC_COMPUTE, into, 1);
        ort.call(options.plansMemory() ? Ort.ENABLE_MEMORY_PATTERN : Ort.DISABLE_MEMORY_PATTERN, into);
        ort.call(options.cpuArena() ? Ort.ENABLE_CPU_ARENA : Ort.DISABLE_CPU_ARENA, into);
        options.entries().forEach((key, value) -> ort.call(Ort.ADD_CONFIG_ENTRY, into, ort.text(key), ort.text(value)));
        if (!options.initializers().isEmpty()) {
            List<Pointer> names = new ArrayList<>();
            List<Pointer> values = new ArrayList<>();
            options.initializers().forEach((name, tensor) -> {
                names.add(ort.text(name));
                values.add(tensor.value());
            });
            ort.call(Ort.ADD_EXTERNAL_INITIALIZERS, into, Ort.array(names), Ort.array(values), (long) names.size());
        }
        if (options.cuda().isPresent()) {
            appendCuda(ort, into, options.cuda().getAsInt(), options.tf32());
        }
    }

    private static void appendCuda(Ort ort, Pointer into, int ordinal, boolean tf32) {
        Pointer cuda = ort.create(Ort.CREATE_CUDA_OPTIONS);
        try {
            // no TF32 unless requested, and the arena allocates the requested size, not the next power of two
            Map<String, String> settings = new LinkedHashMap<>();
            settings.put("device_id", Integer.toString(ordinal));
            settings.put("use_tf32", tf32 ? "1" : "0");
            settings.put("arena_extend_strategy", "kSameAsRequested");
            ort.call(
                    Ort.UPDATE_CUDA_OPTIONS,
                    cuda,
                    Ort.array(settings.keySet().stream().map(ort::text).toList()),
                    Ort.array(settings.values().stream().map(ort::text).toList()),
                    (long) settings.size());
            ort.call(Ort.APPEND_CUDA, into, cuda);
        } finally {
            ort.release(Ort.RELEASE_CUDA_OPTIONS, cuda);
        }
    }

    private static List<String> outputs(Pointer session) {
        Ort ort = Ort.get();
        LongByReference count = new LongByReference();
        ort.call(Ort.SESSION_OUTPUT_COUNT, session, count);
        Pointer allocator = ort.create(Ort.DEFAULT_ALLOCATOR);
        List<String> names = new ArrayList<>();
        for (long i = 0; i < count.getValue(); i++) {
            Pointer name = ort.create(Ort.SESSION_OUTPUT_NAME, session, i, allocator);
            names.add(name.getString(0, "UTF-8"));
            ort.call(Ort.ALLOCATOR_FREE, allocator, name);
        }
        return List.copyOf(names);
    }

    public List<String> outputs() {
        return outputs;
    }

    /** Nothing is bound yet. */
    public Binding bind() {
        return new Binding();
    }

    /** Runs with these inputs; all outputs are new, in host memory. */
    public Result run(Map<String, Tensor> inputs) {
        return run(inputs, outputs, Map.of(), Place.HOST);
    }

    /**
     * Runs.
     *
     * @param place of the new ones
     */
    public Result run(Map<String, Tensor> inputs, Collection<String> wanted, Map<String, Tensor> pinned, Place place) {
        try (Binding binding = bind()) {
            inputs.forEach(binding::input);
            pinned.forEach(binding::output);
            wanted.forEach(name -> binding.output(name, place));
            return binding.run();
        }
    }

    /** Input and output bindings of a graph for any number of runs. For one thread; close it before the session. */
    public final class Binding implements AutoCloseable {
        private final Ort ort = Ort.get();
        private final Pointer binding = ort.create(Ort.CREATE_BINDING, session);
        private final Map<String, Tensor> inputs = new LinkedHashMap<>(); // held, as the runtime only borrows them
        private final Map<String, Object> bound = new LinkedHashMap<>(); // a tensor, or the place of a new one

        private Binding() {}

        /** Binds an input to a tensor; a host value is copied to the device immediately. */
        public Binding input(String name, Tensor tensor) {
            ort.call(Ort.BIND_INPUT, binding, ort.text(name), tensor.value());
            inputs.put(name, tensor);
            return this;
        }

        /** Binds an output to a tensor, which may also be an input. */
        public Binding output(String name, Tensor tensor) {
            ort.call(Ort.BIND_OUTPUT, binding, ort.text(name), tensor.value());
            bound.put(name, tensor);
            return this;
        }

        /** Lets each run allocate a new output tensor. */
        public Binding output(String name, Place place) {
            bound.put(name, place);
            return this;
        }

        /** Returns the new tensors once they are all computed. */
        public Result run() {
            bound.forEach((name, to) -> {
                if (to
                        instanceof
                        Place place) { // rebind for each run, or the runtime would overwrite the last run's output
                    ort.call(Ort.BIND_OUTPUT_TO_DEVICE, binding, ort.text(name), place.info());
                }
            });
            ort.call(Ort.RUN_WITH_BINDING, session, null, binding);
            Pointer allocator = ort.create(Ort.DEFAULT_ALLOCATOR);
            PointerByReference values = new PointerByReference();
            LongByReference count = new LongByReference();
            ort.call(Ort.BOUND_OUTPUT_VALUES, binding, allocator, values, count);
            Map<String, Tensor> made = new LinkedHashMap<>();
            int i = 0;
            for (Map.Entry<String, Object> output : bound.entrySet()) {
                Pointer value = values.getValue().getPointer((long) i++ * Native.POINTER_SIZE);
                if (output.getValue() instanceof Place place) {
                    made.put(output.getKey(), Tensor.of(value, place));
                } else {
                    ort.release(Ort.RELEASE_VALUE, value); // another handle of the bound one
                }
            }
            if (i > 0) {
                ort.call(Ort.ALLOCATOR_FREE, allocator, values.getValue());
            }
            return new Result(made);
        }

        @Override
        public void close() {
            ort.release(Ort.RELEASE_BINDING, binding);
        }
    }

    /** Output tensors of a run by name, closed together. */
    public static final class Result implements AutoCloseable {
        private final Map<String, Tensor> tensors;

        private Result(Map<String, Tensor> tensors) {
            this.tensors = tensors;
        }

        /** The result's own, until it is closed. */
        public Tensor tensor(String output) {
            Tensor tensor = tensors.get(output);
            if (tensor == null) {
                throw new IllegalStateException("no output " + output);
            }
            return tensor;
        }

        /** A copy of an output's values. */
        public float[] floats(String output) {
            return tensor(output).floats();
        }

        /** A copy of an output's values. */
        public long[] longs(String output) {
            return tensor(output).longs();
        }

        public Set<String> names() {
            return tensors.keySet();
        }

        @Override
        public void close() {
            tensors.values().forEach(Tensor::close);
        }
    }

    @Override
    public void close() {
        if (!closed) {
            closed = true;
            Ort.get().release(Ort.RELEASE_SESSION, session);
        }
    }
}
