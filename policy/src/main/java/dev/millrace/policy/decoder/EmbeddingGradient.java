package dev.millrace.policy.decoder;

import dev.millrace.policy.onnx.Dim;
import dev.millrace.policy.onnx.ElementType;
import dev.millrace.policy.onnx.GraphBuilder;
import dev.millrace.policy.onnx.GraphPart;
import dev.millrace.policy.onnx.Operators;
import dev.millrace.policy.onnx.Shape;
import dev.millrace.policy.onnx.Value;
import java.util.Map;

/** Embedding graphs for a device: looks up the tokens' rows, and adds their gradients. */
public final class EmbeddingGradient {
    /** Gradient of the first layer's input, [all, hidden]. */
    public static final String FLOWS = "flows";
    /** Which of these are summed, int64 [T]. */
    public static final String PLACES = "places";
    /** Which of the sums each is part of, int64 [T]. */
    public static final String PARTS = "parts";
    /** The numbers of the sums, int64 [U]. */
    public static final String SUMS = "sums";
    /** The row that each sum is added to, int64 [U], all different. */
    public static final String ROWS = "rows";
    /** The gradient of a tensor of the embedding, [V, hidden]. */
    public static final String GRADIENT = "gradient";
    /** The gradient with the sums added, which may be the same memory. */
    public static final String NEXT = "next.gradient";

    private EmbeddingGradient() {}

    /** {@link SequenceGraph#TOKENS} int64 [T] to {@link LayerGradient#INPUT} [T, hidden]. */
    public static GraphPart lookup(DecoderShape shape) {
        GraphBuilder graph = new GraphBuilder("lookup", true);
        Value tokens = graph.input(SequenceGraph.TOKENS, ElementType.INT64, Shape.of(Dim.symbol("T")));
        Value rows = Transformer.declare(shape, graph).embed(tokens);
        return graph.part("lookup", Map.of(LayerGradient.INPUT, rows));
    }

    /** Adds gradient sums to rows by a matrix product, which has a fixed order of additions. Takes U times T floats. */
    public static GraphPart sums(DecoderShape shape) {
        GraphBuilder graph = new GraphBuilder("embedding-sums", true);
        Operators ops = new Operators(graph);
        Dim width = Dim.of(shape.hiddenSize());
        Shape ofFlows = Shape.of(Dim.symbol("T"));
        Shape ofSums = Shape.of(Dim.symbol("U"));
        Value flows = graph.input(FLOWS, ElementType.FLOAT, Shape.of(Dim.symbol("A"), width));
        Value places = graph.input(PLACES, ElementType.INT64, ofFlows);
        Value parts = graph.input(PARTS, ElementType.INT64, ofFlows);
        Value sums = graph.input(SUMS, ElementType.INT64, ofSums);
        Value rows = graph.input(ROWS, ElementType.INT64, ofSums);
        Value gradient = graph.input(GRADIENT, ElementType.FLOAT, Shape.of(Dim.symbol("V"), width));
        Value isPart = ops.cast(ops.equal(ops.unsqueeze(sums, 1), ops.unsqueeze(parts, 0)), ElementType.FLOAT);
        Value summed = ops.gemm(isPart, ops.gather(flows, places), false, false);
        graph.output(NEXT, ops.scatterNdAdd(gradient, ops.unsqueeze(rows, -1), summed));
        return graph.whole();
    }
}
