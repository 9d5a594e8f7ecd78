package dev.millrace.policy.session;

import dev.millrace.policy.onnx.ElementType;
import dev.millrace.policy.onnx.GraphBuilder;
import dev.millrace.policy.onnx.Operators;
import dev.millrace.policy.onnx.Shape;
import dev.millrace.policy.onnx.Value;
import dev.millrace.policy.onnx.proto.ModelProto;
import dev.millrace.policy.ort.Ort;
import dev.millrace.policy.ort.OrtException;
import dev.millrace.policy.ort.Place;
import dev.millrace.policy.ort.Session;
import dev.millrace.policy.ort.Tensor;
import dev.millrace.policy.weights.TensorSet;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.OptionalInt;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Compiles graphs for one device: the one place where ONNX Runtime is configured.
 *
 * <p>One thread inside an operator is the default: on few cores, sessions with pools of their own compete with each
 * other. Only with one thread is a log-prob the same, bit for bit, independent of the rest of the batch. Parallelism
 * belongs to the callers: several sessions, or several threads in one {@link ScoringSession}. Worker threads, if any,
 * never spin. Immutable and thread-safe.
 */
public final class Engine {
    private static final String CUDA_LIBRARIES =
            " (its provider needs CUDA 13's cudart, cublas and cublasLt, and cuDNN 9, on the library path)";
    private static final String CUDA_PROVIDER = "CUDAExecutionProvider";

    /**
     * Whether the C library returns freed tensors to the system, as the launcher configures it; otherwise it would hold
     * more memory than the runtime.
     */
    private static final boolean GIVES_BACK = System.getenv("MALLOC_MMAP_THRESHOLD_") != null;

    private static final Map<Place, DeviceMemory> MEMORIES = new ConcurrentHashMap<>();

    private final Device device;
    private final int intraOpThreads;
    private final boolean inPlace;

    /**
     * @param intraOpThreads threads inside one operator; above 1 the batch composition shows in the last bits
     * @throws IllegalArgumentException if the device's provider is not in the ONNX Runtime artifact on the class path
     */
    public Engine(Device device, int intraOpThreads) {
        if (intraOpThreads < 1) {
            throw new IllegalArgumentException("intraOpThreads must be at least 1: intraOpThreads=" + intraOpThreads);
        }
        if (device.kind() == Device.Kind.CUDA && !Ort.providers().contains(CUDA_PROVIDER)) {
            throw new IllegalArgumentException("device " + device
                    + " needs ONNX Runtime's CUDA provider, and this build carries only "
                    + Ort.providers() + "; build with -Pgpu, or choose device cpu");
        }
        this.device = device;
        this.intraOpThreads = intraOpThreads;
        this.inPlace = device.kind() == Device.Kind.CPU;
    }

    /** The CPU, treated as a device with its own memory. */
    private Engine() {
        this.device = Device.CPU;
        this.intraOpThreads = 1;
        this.inPlace = false;
    }

    /** The CPU with values copied and cached as on a device, to test device code without one. */
    static Engine cpuAsDevice() {
        return new Engine();
    }

    /** The CPU with one thread per call. */
    public static Engine cpu() {
        return new Engine(Device.CPU, 1);
    }

    /**
     * Loads and closes a graph of one node: only this shows whether the device and its libraries are available.
     *
     * @throws InferenceException if it is not available
     */
    public void requireUsable() {
        GraphBuilder graph = new GraphBuilder("probe");
        Value input = graph.input("in", ElementType.FLOAT, Shape.of(1));
        graph.output("out", new Operators(graph).identity(input));
        compile(graph.model()).close();
    }

    public static String runtimeVersion() {
        return Ort.version();
    }

    public Device device() {
        return device;
    }

    /** Tensors that a graph can read where it runs; to be closed after the last run. */
    interface Bound extends AutoCloseable {
        Map<String, Tensor> tensors();

        @Override
        void close();
    }

    /** A set where the graphs run: in place in host memory, otherwise a current copy shared by all readers. */
    Bound bound(TensorSet set) {
        return inPlace ? new Feeds().set(set, "") : memory().of(set, false);
    }

    /** Returns whether graphs read the host's memory, and nothing has to be copied. */
    boolean isInPlace() {
        return inPlace;
    }

    /** The device's own memory; there is none of the host's. */
    DeviceMemory memory() {
        return MEMORIES.computeIfAbsent(
                place(), absent -> new DeviceMemory(device.tf32() ? new Engine(device.exact(), intraOpThreads) : this));
    }

    /** Where its graphs compute and keep results that the host does not need. */
    Place place() {
        return device.kind() == Device.Kind.CUDA ? Place.cuda(device.ordinal()) : Place.HOST;
    }

    /** Loads a graph whose inputs have few sizes; the caller closes the session. */
    Session compile(ModelProto model) {
        return compile(model, true, Map.of());
    }

    /**
     * Loads a graph whose inputs have many different sizes, some of them large. Memory planning is off: the runtime
     * would plan for each size and hold the planned memory in addition to the memory from before the plan, nearly twice
     * as much. Where freed memory goes back to the system, such a session also has no arena. An arena grows in powers
     * of two and keeps memory between calls that other sessions cannot use.
     */
    Session compileForAnySize(ModelProto model) {
        return compile(model, false, Map.of());
    }

    /**
     * Loads a graph with tensors inside, which the runtime copies to the device and packs as its products read them.
     *
     * @param plansMemory whether the graph's inputs have few sizes
     * @param inside by name, each an initializer that is declared as external; they may be closed and written afterwards
     */
    Session compile(ModelProto model, boolean plansMemory, Map<String, Tensor> inside) {
        Map<String, String> entries = new LinkedHashMap<>();
        entries.put("session.intra_op.allow_spinning", "0");
        entries.put("session.inter_op.allow_spinning", "0");
        // it would fuse the transposition of a product's first matrix, which is slow
        entries.put("optimization.disable_specified_optimizers", "GemmTransposeFusion");
        if (!inside.isEmpty()) {
            // an arena would allocate more than needed, and keep memory freed by earlier sessions
            entries.put("session.use_device_allocator_for_initializers", "1");
        }
        OptionalInt cuda = device.kind() == Device.Kind.CUDA ? OptionalInt.of(device.ordinal()) : OptionalInt.empty();
        try {
            return Session.compile(
                    model.toByteArray(),
                    new Session.Options(
                            cuda,
                            device.tf32(),
                            intraOpThreads,
                            plansMemory,
                            plansMemory || !GIVES_BACK,
                            entries,
                            inside));
        } catch (OrtException e) {
            throw new InferenceException(
                    "ONNX Runtime could not load the graph " + model.getGraph().getName()
                            + " on device " + device + (device.kind() == Device.Kind.CUDA ? CUDA_LIBRARIES : "")
                            + ": " + e.getMessage(),
                    e);
        }
    }
}
