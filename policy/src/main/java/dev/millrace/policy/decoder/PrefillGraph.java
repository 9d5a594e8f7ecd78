package dev.millrace.policy.decoder;

import dev.millrace.policy.onnx.Dim;
import dev.millrace.policy.onnx.ElementType;
import dev.millrace.policy.onnx.GraphBuilder;
import dev.millrace.policy.onnx.Shape;
import dev.millrace.policy.onnx.Value;
import dev.millrace.policy.onnx.proto.ModelProto;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;

/**
 * The graph that takes known tokens in: keys and values of many tokens at once, and nothing about what could follow them. It
 * has no head, and of the last layer only the keys and values.
 *
 * <p>Inputs beside the weights, with B sequences, L new tokens of each, P tokens in front of them and S = P + L:
 * {@link #TOKENS} and {@link #POSITIONS} int64 [B, L], {@link #COS} and {@link #SIN} [any, headSize/2] of which the positions
 * are rows, {@link #MASK} and {@link #WINDOW_MASK} [B, 1, L, S] as {@link SequenceGraph} has them (past tokens first), and
 * {@link DecodeGraph#cache} [B, kvHeads, P, headSize] for each layer. Outputs: {@link DecodeGraph#window} [B, kvHeads, L,
 * headSize], and of a mixture of experts, for each layer but the last, {@link RoutingPorts#experts} int64 and
 * {@link RoutingPorts#weights} [B*L, experts of a token]. What is padding is masked by the caller, and its rows of the outputs are not to be read.
 */
public final class PrefillGraph {
    public static final String TOKENS = "tokens";
    public static final String POSITIONS = "positions";
    public static final String COS = "cos";
    public static final String SIN = "sin";
    public static final String MASK = "mask";
    public static final String WINDOW_MASK = "window_mask";

    private PrefillGraph() {}

    public static ModelProto model(DecoderShape shape, Precision precision) {
        GraphBuilder graph = new GraphBuilder("prefill");
        Transformer transformer = Transformer.declare(shape, graph, precision);
        Dim batch = Dim.symbol("B");
        Dim length = Dim.symbol("L");
        Value tokens = graph.input(TOKENS, ElementType.INT64, Shape.of(batch, length));
        Value positions = graph.input(POSITIONS, ElementType.INT64, Shape.of(batch, length));
        Value cos = graph.input(COS, ElementType.FLOAT, Shape.of(Dim.symbol("T"), Dim.of(shape.headSize() / 2)));
        Value sin = graph.input(SIN, ElementType.FLOAT, cos.shape());
        Map<Boolean, Value> inputs = new HashMap<>();
        List<Value> masks = IntStream.range(0, shape.layers())
                .mapToObj(layer -> inputs.computeIfAbsent(
                        shape.traits().isWindowed(layer),
                        windowed -> graph.input(
                                windowed ? WINDOW_MASK : MASK,
                                ElementType.FLOAT,
                                Shape.of(batch, Dim.ONE, length, Dim.symbol("S")))))
                .toList();
        Shape cache = Shape.of(batch, Dim.of(shape.kvHeads()), Dim.symbol("P"), Dim.of(shape.headSize()));
        List<Value> past = new ArrayList<>();
        for (int i = 0; i < 2 * shape.layers(); i++) {
            past.add(graph.input(DecodeGraph.cache(i / 2, i % 2), ElementType.FLOAT, cache));
        }
        ExtendingAttention attention = new ExtendingAttention(
                shape, transformer.ops(), positions, cos, sin, masks, past, transformer::rounded);
        // what is computed behind the last keys and values reaches no output, and the runtime leaves it out
        RoutingNotes routing = new RoutingNotes();
        transformer
                .routed(routing)
                .layers(transformer.embed(transformer.ops().reshape(tokens, Shape.of(batch.times(length)))), attention);
        for (int i = 0; i < past.size(); i++) {
            graph.output(DecodeGraph.window(i / 2, i % 2), attention.added().get(i));
        }
        for (int layer = 0;
                layer < routing.experts().size() - 1;
                layer++) { // behind the last keys and values is nothing
            graph.output(RoutingPorts.experts(layer), routing.experts().get(layer));
            graph.output(RoutingPorts.weights(layer), routing.weights().get(layer));
        }
        return graph.model();
    }
}
