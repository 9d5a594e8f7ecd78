package dev.millrace.policy.session;

import dev.millrace.policy.decoder.Precision;
import dev.millrace.policy.decoder.QuantizedNames;
import dev.millrace.policy.decoder.TensorSpec;
import dev.millrace.policy.onnx.proto.AttributeProto;
import dev.millrace.policy.onnx.proto.GraphProto;
import dev.millrace.policy.onnx.proto.ModelProto;
import dev.millrace.policy.onnx.proto.NodeProto;
import dev.millrace.policy.onnx.proto.StringStringEntryProto;
import dev.millrace.policy.onnx.proto.TensorProto;
import dev.millrace.policy.onnx.proto.ValueInfoProto;
import dev.millrace.policy.ort.OrtException;
import dev.millrace.policy.ort.Session;
import dev.millrace.policy.ort.Tensor;
import dev.millrace.policy.weights.Dtype;
import dev.millrace.policy.weights.TensorSet;
import dev.millrace.policy.weights.Weights;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.WeakHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import org.jspecify.annotations.Nullable;

/**
 * Weights in the form that an engine of a {@link Precision} reads, computed once for each: in float32 the weights
 * themselves, in bfloat16 the nearest values, or eight-bit integers with scales.
 *
 * <p>Prepared weights must not be written afterwards, unless they are forgotten before they are read again. The
 * prepared form is kept as long as the weights. Thread-safe: the loading thread prepares weights, so that the
 * generating thread need not wait.
 */
public final class PreparedWeights {
    private static final int ROWS = 32;
    private static final float LARGEST = 127f;

    private final Precision precision;
    private final boolean packed;
    private final List<WeightedGraph> graphs = new CopyOnWriteArrayList<>();
    private final Map<Weights, Form> forms = Collections.synchronizedMap(new WeakHashMap<>());

    /**
     * Inputs of a graph that the weights do not contain.
     *
     * @param rounded replaces all of the weights; null for other values
     */
    private record Form(@Nullable Weights rounded, List<Floats> floats, List<Integers> integers) {}

    private record Floats(String name, FloatBuffer values, long[] dims) {}

    private record Integers(String name, ByteBuffer values, long[] dims) {}

    public PreparedWeights(Precision precision) {
        this(precision, false);
    }

    /**
     * @param packed whether each graph is compiled with the weights inside, once for all of its calls, where the runtime packs them for its products
     *     and keeps them on its device; else it is fed them in every call
     */
    public PreparedWeights(Precision precision, boolean packed) {
        this.precision = precision;
        this.packed = packed;
    }

    public Precision precision() {
        return precision;
    }

    /** Prepares the form of weights, and the sessions of graphs compiled so far, unless they exist. */
    public void prepare(Weights weights) {
        if (makes(weights)) {
            form(weights);
        }
        graphs.forEach(graph -> graph.prepare(weights));
    }

    /**
     * Discards every form, since weights may have been written; they are prepared again on demand. For the thread that
     * runs the graphs.
     */
    public void forget() {
        forms.clear();
        graphs.forEach(WeightedGraph::forget);
    }

    /**
     * Compiles a graph for weights of this form; the caller closes it once it prepares no further weights.
     *
     * @param plansMemory whether its inputs have few sizes
     */
    WeightedGraph graph(Engine engine, ModelProto model, boolean plansMemory) {
        if (precision == Precision.INT8 && !engine.isInPlace()) {
            throw new IllegalArgumentException("precision int8 is for the cpu: device=" + engine.device());
        }
        WeightedGraph graph = packed
                ? new PackedGraph(engine, this, model, plansMemory)
                : new WeightedGraph.Fed(engine, this, model, plansMemory);
        graphs.add(graph);
        return graph;
    }

    /** The form of weights in the memory of the engine's graphs; prepared on demand. */
    Engine.Bound on(Engine engine, Weights weights) {
        if (precision == Precision.INT8) {
            return inHost(weights);
        }
        return precision == Precision.BF16 && !engine.isInPlace()
                ? engine.memory().of(floats(weights), true)
                : engine.bound(floats(weights));
    }

    /** The form of weights in the host's memory. */
    private Feeds inHost(Weights weights) {
        Feeds feeds = new Feeds();
        if (precision != Precision.INT8) {
            return feeds.set(floats(weights), "");
        }
        for (TensorSpec spec : weights.tensors().specs()) {
            if (!QuantizedNames.isQuantized(spec)) { // read where they are
                feeds.floats(spec.name(), weights.tensors().values(spec.name()), spec.dimsArray());
            }
        }
        Form form = form(weights);
        form.floats().forEach(tensor -> feeds.floats(tensor.name(), tensor.values(), tensor.dims()));
        form.integers().forEach(tensor -> feeds.integers(tensor.name(), tensor.values(), tensor.dims()));
        return feeds;
    }

    /**
     * Returns whether the form differs from the weights themselves. Only separate forms are cached: one that shares the
     * weights' memory would keep it alive, and the next version might not fit.
     */
    private boolean makes(Weights weights) {
        return precision == Precision.INT8 || precision == Precision.BF16 && weights.dtype() != Dtype.BF16;
    }

    private TensorSet floats(Weights weights) {
        Weights rounded = makes(weights) ? form(weights).rounded() : null;
        return (rounded == null ? weights : rounded).tensors();
    }

    private Form form(Weights weights) {
        Form known = forms.get(weights);
        if (known != null) {
            return known;
        }
        // outside the lock: the generator reads the form of other weights meanwhile
        Form made = precision == Precision.INT8
                ? quantized(weights)
                : new Form(weights.as(Dtype.BF16), List.of(), List.of());
        Form first = forms.putIfAbsent(weights, made);
        return first == null ? made : first;
    }

    private static Form quantized(Weights weights) {
        List<Floats> floats = new ArrayList<>();
        List<Integers> integers = new ArrayList<>();
        for (TensorSpec spec : weights.tensors().specs()) {
            if (QuantizedNames.isQuantized(spec)) {
                quantize(weights.tensors().values(spec.name()), spec, floats, integers);
            }
        }
        return new Form(null, List.copyOf(floats), List.copyOf(integers));
    }

    /** Symmetric, each output by its own largest weight; transposed on the way. */
    private static void quantize(FloatBuffer matrix, TensorSpec spec, List<Floats> floats, List<Integers> integers) {
        int out = Math.toIntExact(spec.dims().get(0));
        int in = Math.toIntExact(spec.dims().get(1));
        FloatBuffer scales = PositionTables.direct(out);
        ByteBuffer transposed =
                ByteBuffer.allocateDirect(Math.multiplyExact(in, out)).order(ByteOrder.nativeOrder());
        float[] rows = new float[ROWS * in];
        byte[] column = new byte[ROWS];
        float[] inverse = new float[ROWS];
        for (int from = 0; from < out; from += ROWS) {
            int count = Math.min(ROWS, out - from);
            matrix.get(from * in, rows, 0, count * in);
            for (int row = 0; row < count; row++) {
                float largest = 0;
                for (int i = row * in; i < (row + 1) * in; i++) {
                    largest = Math.max(largest, Math.abs(rows[i]));
                }
                scales.put(from + row, largest / LARGEST);
                inverse[row] = largest == 0 ? 0 : LARGEST / largest;
            }
            for (int i = 0; i < in; i++) {
                for (int row = 0; row < count; row++) {
                    column[row] = (byte) Math.rint(rows[row * in + i] * inverse[row]);
                }
                transposed.put(i * out + from, column, 0, count);
            }
        }
        floats.add(new Floats(QuantizedNames.scales(spec.name()), scales, new long[] {1, out}));
        integers.add(new Integers(QuantizedNames.integers(spec.name()), transposed, new long[] {in, out}));
    }

    /**
     * A graph with weights inside: one session for each of the last versions, with weights packed by the runtime, on
     * the device if there is one.
     *
     * <p>The two that ran last stay, and the newest that was prepared and has not run yet. Another thread may prepare;
     * a session is closed only by the thread that runs a third, so it is not in use.
     */
    static final class PackedGraph implements WeightedGraph {
        private static final int RAN = 2;

        private final Engine engine;
        private final PreparedWeights prepared;
        private final ModelProto model;
        private final boolean plansMemory;
        private final Set<String> read = new HashSet<>();
        private final Map<Weights, Session> ran = new LinkedHashMap<>(); // the last at the end
        private @Nullable Weights waitingFor;
        private @Nullable Session waiting;
        private boolean closed;

        PackedGraph(Engine engine, PreparedWeights prepared, ModelProto model, boolean plansMemory) {
            this.engine = engine;
            this.prepared = prepared;
            this.model = model;
            this.plansMemory = plansMemory;
            addRead(model.getGraph(), read);
        }

        @Override
        public void prepare(Weights weights) {
            synchronized (this) {
                if (closed || ran.containsKey(weights) || waitingFor == weights) {
                    return;
                }
            }
            Session made = compile(weights); // outside the lock, so that generation continues meanwhile
            synchronized (this) {
                if (closed || ran.containsKey(weights)) {
                    close(made);
                    return;
                }
                close(waiting);
                waitingFor = weights;
                waiting = made;
            }
        }

        @Override
        public synchronized void forget() {
            ran.values().forEach(PackedGraph::close);
            ran.clear();
            close(waiting);
            waiting = null;
            waitingFor = null;
        }

        @Override
        public Weighted with(Weights weights) {
            return new Weighted(session(weights), new Feeds()); // nothing of them is an input
        }

        private Session session(Weights weights) {
            synchronized (this) {
                Session session = taken(weights);
                if (session != null) {
                    return session;
                }
            }
            Session made = compile(weights);
            synchronized (this) {
                keep(weights, made);
                return made;
            }
        }

        /** Returns an existing session and marks it as last run; null if there is none. */
        private @Nullable Session taken(Weights weights) {
            Session session = ran.remove(weights);
            if (session == null && waitingFor == weights) {
                session = waiting;
                waiting = null;
                waitingFor = null;
            }
            if (session != null) {
                keep(weights, session);
            }
            return session;
        }

        private void keep(Weights weights, Session session) {
            ran.put(weights, session);
            Iterator<Session> oldest = ran.values().iterator();
            while (ran.size() > RAN) {
                close(oldest.next());
                oldest.remove();
            }
        }

        private Session compile(Weights weights) {
            try (Feeds all = prepared.inHost(weights)) {
                Map<String, Tensor> inside = new LinkedHashMap<>(all.map());
                inside.keySet().retainAll(read);
                return engine.compile(withInside(inside.keySet(), all.map().keySet()), plansMemory, inside);
            }
        }

        /**
         * The same graph with external initializers instead of inputs.
         *
         * @param fed of all inputs that it is to be without
         */
        private ModelProto withInside(Set<String> names, Set<String> fed) {
            GraphProto.Builder graph = model.getGraph().toBuilder().clearInput();
            for (ValueInfoProto input : model.getGraph().getInputList()) {
                if (names.contains(input.getName())) {
                    graph.addInitializer(external(input));
                } else if (!fed.contains(input.getName())) {
                    graph.addInput(input);
                }
            }
            return model.toBuilder().setGraph(graph).build();
        }

        /** Values read by nodes of this graph and of nested graphs. */
        private static void addRead(GraphProto graph, Set<String> names) {
            for (NodeProto node : graph.getNodeList()) {
                names.addAll(node.getInputList());
                node.getAttributeList().stream()
                        .filter(AttributeProto::hasG)
                        .forEach(attribute -> addRead(attribute.getG(), names));
            }
        }

        private static TensorProto external(ValueInfoProto input) {
            TensorProto.Builder tensor = TensorProto.newBuilder()
                    .setName(input.getName())
                    .setDataType(input.getType().getTensorType().getElemType())
                    .setDataLocation(TensorProto.DataLocation.EXTERNAL)
                    .addExternalData(StringStringEntryProto.newBuilder()
                            .setKey("location")
                            .setValue("weights"));
            input.getType().getTensorType().getShape().getDimList().forEach(dim -> tensor.addDims(dim.getDimValue()));
            return tensor.build();
        }

        @Override
        public synchronized void close() {
            closed = true;
            forget();
        }

        private static void close(@Nullable Session session) {
            if (session == null) {
                return;
            }
            try {
                session.close();
            } catch (OrtException e) {
                throw new InferenceException("could not close the session: " + e.getMessage(), e);
            }
        }
    }
}
