package dev.millrace.policy.decoder;

import dev.millrace.policy.onnx.Dim;
import dev.millrace.policy.onnx.ElementType;
import dev.millrace.policy.onnx.GraphBuilder;
import dev.millrace.policy.onnx.Operators;
import dev.millrace.policy.onnx.Shape;
import dev.millrace.policy.onnx.Value;
import java.util.ArrayList;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Writes the decoder's layers into a graph, for scoring, gradient and decoding.
 *
 * <p>Rows are tokens: every value here is {@code [rows, width]}, so that each linear layer is one matrix product. The
 * weights are inputs of the graph under their own names, so that a swap of weights touches neither graph nor session.
 */
final class Transformer {
    private final DecoderShape shape;
    private final Operators ops;
    private final Arithmetic arithmetic;
    private final Routing routing;

    private Transformer(DecoderShape shape, Operators ops, Arithmetic arithmetic, Routing routing) {
        this.shape = shape;
        this.ops = ops;
        this.arithmetic = arithmetic;
        this.routing = routing;
    }

    /** Declares the weights as inputs of the graph; of float32. */
    static Transformer declare(DecoderShape shape, GraphBuilder graph) {
        return declare(shape, graph, Precision.F32);
    }

    /** Declares the weights as inputs of the graph, in the form that the precision reads there. */
    static Transformer declare(DecoderShape shape, GraphBuilder graph, Precision precision) {
        return new Transformer(shape, new Operators(graph), Arithmetic.declare(shape, graph, precision), Routing.OWN);
    }

    /** The same layers with the same weights, whose experts are chosen in another way. */
    Transformer routed(Routing other) {
        return new Transformer(shape, ops, arithmetic, other);
    }

    /** The same layers with the same weights, written into the body of a loop. */
    Transformer inside(GraphBuilder body) {
        return new Transformer(shape, new Operators(body), arithmetic.elsewhere(), routing);
    }

    Operators ops() {
        return ops;
    }

    Map<String, Value> weights() {
        return Collections.unmodifiableMap(arithmetic.weights());
    }

    Value weight(String name) {
        return arithmetic.weight(name);
    }

    /** Rows of the embedding: int64 [rows] to [rows, hidden]. */
    Value embed(Value tokens) {
        Value rows = lookup(tokens).rows();
        return rows.type() == ElementType.FLOAT ? rows : ops.cast(rows, ElementType.FLOAT);
    }

    /** The same, with what each tensor of the embedding gave. */
    EmbeddingLookup lookup(Value tokens) {
        WholeTensor embedding = shape.embedding();
        List<Value> pieces =
                embedding.pieces().stream().map(piece -> weight(piece.name())).toList();
        return EmbeddingLookup.append(ops, embedding, pieces, tokens);
    }

    /** All layers and the final norm: [rows, hidden] to [rows, hidden]. */
    Value layers(Value embedded, Attention attention) {
        Value x = embedded;
        for (int layer = 0; layer < shape.layers(); layer++) {
            x = layer(x, layer, attention);
        }
        return finalNorm(x);
    }

    /** One layer: [rows, hidden] to [rows, hidden]. */
    Value layer(Value x, int layer, Attention attention) {
        Value h = norm(x, TensorNames.inputNorm(layer));
        Value query = linear(h, TensorNames.query(layer), shape.qkvBias());
        Value key = linear(h, TensorNames.key(layer), shape.qkvBias());
        Value value = linear(h, TensorNames.value(layer), shape.qkvBias());
        if (shape.traits().queryKeyNorm()) {
            query = normByHead(query, shape.heads(), TensorNames.queryNorm(layer));
            key = normByHead(key, shape.kvHeads(), TensorNames.keyNorm(layer));
        }
        Value mixed = attention.attend(layer, query, key, value);
        Value between = rounded(ops.add(
                x,
                linear(
                        rounded(mixed),
                        TensorNames.attentionOutput(layer),
                        shape.traits().outputBias())));
        return rounded(ops.add(between, mlp(norm(between, TensorNames.postAttentionNorm(layer)), layer)));
    }

    /** Final norm, the head's input: [rows, hidden] to [rows, hidden]. */
    Value finalNorm(Value x) {
        return norm(x, TensorNames.FINAL_NORM);
    }

    /** [rows, hidden] to [rows, vocab]. */
    Value logits(Value hidden) {
        return rounded(product(hidden, shape.head().name()));
    }

    /** Value of each row: [rows, hidden] to [rows]. */
    Value values(Value hidden) {
        Value weights = ops.expand(weight(TensorNames.VALUE_WEIGHT), hidden.shape());
        return ops.add(RowSoftmax.rowDots(ops, hidden, weights), weight(TensorNames.VALUE_BIAS));
    }

    /** {@code x W'}, not rounded, in whichever tensors the matrix lies. */
    Value product(Value x, String matrix) {
        return arithmetic.product(ops, x, matrix);
    }

    private Value mlp(Value h, int layer) {
        Experts experts = shape.traits().experts();
        return experts.present()
                ? new ExpertLayer(experts, this).apply(h, layer, routing)
                : swiGlu(
                        h,
                        TensorNames.gate(layer),
                        TensorNames.up(layer),
                        TensorNames.down(layer),
                        shape.traits().mlpBias());
    }

    /** SwiGLU: {@code down(silu(gate(h)) * up(h))}. */
    Value swiGlu(Value h, String gateName, String upName, String downName, boolean biased) {
        Value gate = linear(h, gateName, biased);
        Value silu = rounded(ops.mul(gate, ops.sigmoid(gate)));
        Value product = rounded(ops.mul(silu, linear(h, upName, biased)));
        return linear(product, downName, biased);
    }

    private Value norm(Value x, String name) {
        return rounded(ops.rmsNorm(x, weight(name), (float) shape.rmsNormEps()).get(0));
    }

    /** Each head's own part of [rows, heads*headSize] normed by itself, with one scale for all heads. */
    private Value normByHead(Value x, int heads, String name) {
        Shape byHead = Shape.of(x.dim(0), Dim.of(heads), Dim.of(shape.headSize()));
        return ops.reshape(norm(ops.reshape(x, byHead), name), x.shape());
    }

    private Value linear(Value x, String name, boolean biased) {
        return arithmetic.linear(ops, x, name, biased);
    }

    Value rounded(Value x) {
        return arithmetic.rounded(ops, x);
    }

    /** How the layers' projections are computed and their results rounded: a {@link Precision} written into a graph. */
    static final class Arithmetic {
        private static final float LARGEST = 127f;
        /** Rows below it count as zero, because a scale must not be 0. */
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

        /** For another body of the same graph, which cannot read values of this one. */
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

        /** Of float32, independent of the matrix's type. */
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

        List<String> pieces(String name) {
            WholeTensor whole = cut.get(name);
            return whole == null
                    ? List.of(name)
                    : whole.pieces().stream().map(TensorSpec::name).toList();
        }

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
}
