package dev.millrace.policy.session;

import dev.millrace.policy.decoder.Precision;
import dev.millrace.policy.decoder.QuantizedNames;
import dev.millrace.policy.decoder.TensorSpec;
import dev.millrace.policy.onnx.proto.ModelProto;
import dev.millrace.policy.weights.Dtype;
import dev.millrace.policy.weights.Weights;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.WeakHashMap;
import java.util.concurrent.CopyOnWriteArrayList;

/**
 * Weights in the form that an engine of a {@link Precision} reads, made once for each: in float32 the weights themselves, in
 * bfloat16 their nearest, and as eight-bit integers with scales beside.
 *
 * <p>Weights that are prepared must not be written afterwards, unless they are forgotten before they are read again. What is made of
 * them is kept as long as they are. Thread-safe: who
 * loads weights prepares them, so that who generates need not wait for it.
 */
public final class PreparedWeights {
    private static final int ROWS = 32;
    private static final float LARGEST = 127f;

    private final Precision precision;
    private final boolean packed;
    private final List<WeightedGraph> graphs = new CopyOnWriteArrayList<>();
    private final Map<Weights, Form> forms = Collections.synchronizedMap(new WeakHashMap<>());

    /** What a graph is fed that the weights do not hold. */
    private record Form(List<Floats> floats, List<Integers> integers) {}

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

    /** Makes the form of weights, and what the graphs that were compiled so far need of it, unless it is there. */
    public void prepare(Weights weights) {
        if (makes(weights)) {
            form(weights);
        }
        graphs.forEach(graph -> graph.prepare(weights));
    }

    /**
     * Makes every form anew when it is next needed: weights may have been written meanwhile. For the thread that runs the
     * graphs.
     */
    public void forget() {
        forms.clear();
        graphs.forEach(WeightedGraph::forget);
    }

    /**
     * Compiles a graph for weights of this form; the caller closes it when no more weights are prepared.
     *
     * @param plansMemory whether its inputs have few sizes
     */
    WeightedGraph graph(Engine engine, ModelProto model, boolean plansMemory) {
        WeightedGraph graph = packed
                ? new PackedGraph(engine, this, model, plansMemory)
                : new WeightedGraph.Fed(engine, this, model, plansMemory);
        graphs.add(graph);
        return graph;
    }

    /** Feeds the form of weights, which is made first unless it is there. */
    Feeds feed(Feeds feeds, Weights weights) {
        if (!makes(weights)) {
            return feeds.set(weights.tensors(), "");
        }
        if (precision == Precision.INT8) {
            for (TensorSpec spec : weights.tensors().specs()) {
                if (!QuantizedNames.isQuantized(spec)) { // read where they are
                    feeds.floats(spec.name(), weights.tensor(spec.name()), spec.dimsArray());
                }
            }
        }
        Form form = form(weights);
        form.floats().forEach(tensor -> feeds.floats(tensor.name(), tensor.values(), tensor.dims()));
        form.integers().forEach(tensor -> feeds.integers(tensor.name(), tensor.values(), tensor.dims()));
        return feeds;
    }

    /**
     * Whether the form is something else than the weights themselves. What is not made is not kept: a form with parts of the weights' own memory
     * would hold that until somebody asks for another, and who loads the next version may find no room for it.
     */
    private boolean makes(Weights weights) {
        return precision == Precision.INT8 || precision == Precision.BF16 && weights.dtype() != Dtype.BF16;
    }

    private Form form(Weights weights) {
        Form known = forms.get(weights);
        if (known != null) {
            return known;
        }
        // not under the lock: who generates reads the form of other weights meanwhile
        Form made = precision == Precision.INT8 ? quantized(weights) : floats(weights);
        Form first = forms.putIfAbsent(weights, made);
        return first == null ? made : first;
    }

    private Form floats(Weights weights) {
        Weights of = weights.as(Dtype.BF16);
        List<Floats> floats = new ArrayList<>();
        of.tensors().specs().forEach(spec -> floats.add(floats(of, spec)));
        return new Form(List.copyOf(floats), List.of());
    }

    private static Floats floats(Weights weights, TensorSpec spec) {
        return new Floats(spec.name(), weights.tensor(spec.name()), spec.dimsArray());
    }

    private static Form quantized(Weights weights) {
        List<Floats> floats = new ArrayList<>();
        List<Integers> integers = new ArrayList<>();
        for (TensorSpec spec : weights.tensors().specs()) {
            if (QuantizedNames.isQuantized(spec)) {
                quantize(weights.tensor(spec.name()), spec, floats, integers);
            }
        }
        return new Form(List.copyOf(floats), List.copyOf(integers));
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
}
