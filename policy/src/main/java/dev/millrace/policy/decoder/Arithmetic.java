package dev.millrace.policy.decoder;

import dev.millrace.policy.onnx.ElementType;
import dev.millrace.policy.onnx.GraphBuilder;
import dev.millrace.policy.onnx.Operators;
import dev.millrace.policy.onnx.Shape;
import dev.millrace.policy.onnx.Value;
import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** How the layers' projections are computed and their results rounded: a {@link Precision} written into a graph. */
final class Arithmetic {
    private static final float LARGEST = 127f;
    /** Below it a row is nothing but zeros for the purpose of a scale, which must not be 0. */
    private static final float SMALLEST_SCALE = 1e-30f;

    private final Precision precision;
    private final Map<String, Value> weights;
    private final Map<String, WholeTensor> cut;
    private final Map<Value, Row> quantised = new IdentityHashMap<>();

    /** Eight-bit integers [rows, in], and the scale of each row [rows, 1]. */
    private record Row(Value integers, Value scale) {}

    /** @param cut what lies in several tensors, by its name */
    private Arithmetic(Precision precision, Map<String, Value> weights, Map<String, WholeTensor> cut) {
        this.precision = precision;
        this.weights = weights;
        this.cut = cut;
    }

    /**
     * Declares the weights as inputs of the graph, in the form that the precision reads.
     * A device has products of bfloat16: matrices are of bfloat16 there, where it is the precision.
     */
    static Arithmetic declare(DecoderShape shape, GraphBuilder graph, Precision precision) {
        Map<String, Value> weights = new LinkedHashMap<>();
        for (TensorSpec spec : shape.tensors()) {
            String name = spec.name();
            if (precision == Precision.INT8 && QuantizedNames.isQuantized(spec)) {
                int out = Math.toIntExact(spec.dims().get(0));
                int in = Math.toIntExact(spec.dims().get(1));
                String integers = QuantizedNames.integers(name);
                String scales = QuantizedNames.scales(name);
                weights.put(integers, graph.input(integers, ElementType.INT8, Shape.of(in, out)));
                weights.put(scales, graph.input(scales, ElementType.FLOAT, Shape.of(1, out)));
            } else {
                ElementType type = graph.onDevice()
                                && precision == Precision.BF16
                                && spec.dims().size() > 1
                        ? ElementType.BFLOAT16
                        : ElementType.FLOAT;
                weights.put(name, graph.input(name, type, Shape.of(spec.dimsArray())));
            }
        }
        Map<String, WholeTensor> cut = new LinkedHashMap<>();
        shape.wholes().stream().filter(WholeTensor::isCut).forEach(whole -> cut.put(whole.name(), whole));
        return new Arithmetic(precision, weights, cut);
    }

    /** For another body of the same graph: what was computed in this one cannot be seen there. */
    Arithmetic elsewhere() {
        return new Arithmetic(precision, weights, cut);
    }

    Map<String, Value> weights() {
        return weights;
    }

    Value weight(String name) {
        return Objects.requireNonNull(weights.get(name), name);
    }

    /** {@code x W' + b}, [rows, in] to [rows, out]. */
    Value linear(Operators ops, Value x, String name, boolean biased) {
        String matrix = name + ".weight";
        if (precision == Precision.INT8) {
            Value product = joined(
                    ops,
                    pieces(matrix).stream()
                            .map(piece -> integerProduct(ops, x, piece))
                            .toList());
            return biased ? ops.add(product, weight(name + ".bias")) : product;
        }
        return rounded(ops, biased ? product(ops, x, matrix, weight(name + ".bias")) : product(ops, x, matrix));
    }

    /** {@code x W'}, not rounded: the columns of the pieces side by side. */
    Value product(Operators ops, Value x, String matrix) {
        return joined(
                ops,
                pieces(matrix).stream()
                        .map(piece -> gemm(ops, x, weight(piece), null))
                        .toList());
    }

    private Value product(Operators ops, Value x, String matrix, Value bias) {
        WholeTensor whole = cut.get(matrix);
        if (whole == null) {
            return gemm(ops, x, weight(matrix), bias);
        }
        List<Value> products = new ArrayList<>();
        for (int i = 0; i < whole.pieces().size(); i++) {
            Value part = ops.slice(bias, 0, whole.firstRow(i), whole.firstRow(i + 1));
            products.add(gemm(ops, x, weight(whole.pieces().get(i).name()), part));
        }
        return joined(ops, products);
    }

    /** Of float32, whatever the matrix is of; what it is multiplied with has values of its type. */
    private static Value gemm(Operators ops, Value x, Value matrix, @Nullable Value bias) {
        Value left = cast(ops, x, matrix.type());
        Value product = bias == null
                ? ops.gemm(left, matrix, false, true)
                : ops.gemm(left, matrix, cast(ops, bias, matrix.type()), false, true);
        return cast(ops, product, ElementType.FLOAT);
    }

    private static Value cast(Operators ops, Value x, ElementType type) {
        return x.type() == type ? x : ops.cast(x, type);
    }

    private static Value joined(Operators ops, List<Value> columns) {
        return columns.size() == 1 ? columns.get(0) : ops.concat(1, columns.toArray(Value[]::new));
    }

    /** The names of the tensors that a whole lies in. */
    List<String> pieces(String name) {
        WholeTensor whole = cut.get(name);
        return whole == null
                ? List.of(name)
                : whole.pieces().stream().map(TensorSpec::name).toList();
    }

    /** What a value becomes when it is kept. */
    Value rounded(Operators ops, Value x) {
        return precision == Precision.BF16 ? ops.cast(ops.cast(x, ElementType.BFLOAT16), ElementType.FLOAT) : x;
    }

    private Value integerProduct(Operators ops, Value x, String name) {
        Row row = quantised.computeIfAbsent(x, absent -> quantised(ops, absent));
        Value sums = ops.matMulInteger(row.integers(), weight(QuantizedNames.integers(name)));
        Value scales = ops.mul(row.scale(), weight(QuantizedNames.scales(name)));
        return ops.mul(ops.cast(sums, ElementType.FLOAT), scales);
    }

    private static Row quantised(Operators ops, Value x) {
        Value largest = ops.reduceMax(ops.abs(x), true, -1);
        Value scale = ops.max(ops.mul(largest, 1 / LARGEST), ops.graph().scalar(SMALLEST_SCALE));
        Value integers = ops.cast(ops.round(ops.div(x, scale)), ElementType.INT8);
        return new Row(integers, scale);
    }
}
