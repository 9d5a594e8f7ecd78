package dev.millrace.policy.decoder;

import dev.millrace.policy.onnx.Dim;
import dev.millrace.policy.onnx.ElementType;
import dev.millrace.policy.onnx.GraphBuilder;
import dev.millrace.policy.onnx.Operators;
import dev.millrace.policy.onnx.Shape;
import dev.millrace.policy.onnx.Value;
import java.util.Collections;
import java.util.List;
import java.util.Map;

/**
 * The decoder's layers written into a graph: what scoring, gradient and decoding have in common.
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

    /** What the head reads: [rows, hidden] to [rows, hidden]. */
    Value finalNorm(Value x) {
        return norm(x, TensorNames.FINAL_NORM);
    }

    /** [rows, hidden] to [rows, vocab]. */
    Value logits(Value hidden) {
        return rounded(product(hidden, shape.head().name()));
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

    /** What a value becomes when it is kept, by the precision. */
    Value rounded(Value x) {
        return arithmetic.rounded(ops, x);
    }
}
