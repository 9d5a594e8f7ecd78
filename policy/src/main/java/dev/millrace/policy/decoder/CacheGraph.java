package dev.millrace.policy.decoder;

import dev.millrace.policy.onnx.Dim;
import dev.millrace.policy.onnx.ElementType;
import dev.millrace.policy.onnx.GraphBuilder;
import dev.millrace.policy.onnx.Operators;
import dev.millrace.policy.onnx.Shape;
import dev.millrace.policy.onnx.Value;
import dev.millrace.policy.onnx.proto.ModelProto;
import java.util.stream.LongStream;

/**
 * Graphs that move the first rows of a slot's keys and values in device memory. A cache is [slots, kvHeads, capacity,
 * headSize]; the moved part is [1, kvHeads, rows, headSize] for each {@link DecodeGraph#cache part}.
 *
 * <p>Inputs: {@link #FROM} or {@link #TO}, int64 [1], the slot; {@link #ROWS}, int64 [rows], which; the caches, those that are
 * written with {@link #WRITTEN} in front of their names, and written under these names: an output is to be bound to the memory of
 * its input.
 */
public final class CacheGraph {
    public static final String FROM = "from";
    public static final String TO = "to";
    public static final String ROWS = "rows";
    public static final String WRITTEN = "written.";

    private CacheGraph() {}

    /** Slot to slot, of one cache or of two. */
    public static ModelProto copy(DecoderShape shape) {
        return write(shape, true, true);
    }

    /** From a slot; the outputs have the names of the parts. */
    public static ModelProto take(DecoderShape shape) {
        return write(shape, true, false);
    }

    /** Into a slot; the inputs have the names of the parts. */
    public static ModelProto give(DecoderShape shape) {
        return write(shape, false, true);
    }

    private static ModelProto write(DecoderShape shape, boolean reads, boolean writes) {
        GraphBuilder graph = new GraphBuilder(reads ? writes ? "copy" : "take" : "give");
        Operators ops = new Operators(graph);
        Value rows = ops.unsqueeze(graph.input(ROWS, ElementType.INT64, Shape.of(Dim.symbol("R"))), 0);
        Dim kvHeads = Dim.of(shape.kvHeads());
        Dim headSize = Dim.of(shape.headSize());
        Shape moved = Shape.of(Dim.ONE, kvHeads, Dim.symbol("R"), headSize);
        Value from = reads ? places(ops, graph.input(FROM, ElementType.INT64, Shape.of(1)), rows, shape) : rows;
        Value to = writes ? places(ops, graph.input(TO, ElementType.INT64, Shape.of(1)), rows, shape) : rows;
        for (int i = 0; i < 2 * shape.layers(); i++) {
            String name = DecodeGraph.cache(i / 2, i % 2);
            Shape read = Shape.of(Dim.symbol("N"), kvHeads, Dim.symbol("C"), headSize);
            Value values = reads
                    ? ops.gatherRows(graph.input(name, ElementType.FLOAT, read), from)
                    : graph.input(name, ElementType.FLOAT, moved);
            if (writes) {
                Shape written = Shape.of(Dim.symbol("M"), kvHeads, Dim.symbol("D"), headSize);
                Value cache = graph.input(WRITTEN + name, ElementType.FLOAT, written);
                graph.output(DecodeGraph.grown(i / 2, i % 2), ops.scatterRows(cache, to, values));
            } else {
                graph.output(DecodeGraph.grown(i / 2, i % 2), values);
            }
        }
        return graph.model();
    }

    /**
     * Where rows of slots lie in a cache: int64 [slots, kvHeads, rows, 3].
     *
     * @param slots int64 [slots]
     * @param rows  int64 [slots, rows]
     */
    static Value places(Operators ops, Value slots, Value rows, DecoderShape shape) {
        Dim count = slots.dim(0);
        Dim length = rows.dim(1);
        Dim kvHeads = Dim.of(shape.kvHeads());
        Shape each = Shape.of(count, kvHeads, length, Dim.ONE);
        Value heads = ops.graph().constant(LongStream.range(0, shape.kvHeads()).toArray());
        return ops.concat(
                3,
                ops.expand(ops.reshape(slots, Shape.of(count, Dim.ONE, Dim.ONE, Dim.ONE)), each),
                ops.expand(ops.reshape(heads, Shape.of(Dim.ONE, kvHeads, Dim.ONE, Dim.ONE)), each),
                ops.expand(ops.reshape(rows, Shape.of(count, Dim.ONE, length, Dim.ONE)), each));
    }
}
