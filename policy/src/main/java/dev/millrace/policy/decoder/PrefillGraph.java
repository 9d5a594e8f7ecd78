package dev.millrace.policy.decoder;

import dev.millrace.policy.onnx.Dim;
import dev.millrace.policy.onnx.ElementType;
import dev.millrace.policy.onnx.GraphBuilder;
import dev.millrace.policy.onnx.Operators;
import dev.millrace.policy.onnx.Shape;
import dev.millrace.policy.onnx.Value;
import dev.millrace.policy.onnx.proto.ModelProto;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;

/**
 * The prefill graph: computes keys and values of many known tokens at once, without predicting the next token. It has
 * no head, and only the keys and values of the last layer.
 *
 * <p>B is the number of sequences, L of new tokens in each, P of tokens before them, and S = P + L. Inputs in addition
 * to the weights: {@link #TOKENS}, {@link #POSITIONS} and {@link #ROWS}, where in the cache their keys go, int64 [B, L];
 * {@link DecodeGraph#SLOTS}, int64 [B]; {@link #PAST_ROWS}, int64 [P], which of the cache are read, if there is a past; {@link #COS} and {@link #SIN} [any, headSize/2],
 * indexed by the positions; {@link #MASK} and {@link #WINDOW_MASK} [B, 1, L, S] as in {@link SequenceGraph} (past
 * tokens first); {@link DecodeGraph#cache} [N, kvHeads, C, headSize] for each layer. Outputs:
 * {@link DecodeGraph#grown}, the caches with the new keys and values, to be bound to the memory of these. Outputs of a mixture of experts, for each layer but the last:
 * {@link RoutingPorts#experts} int64 and {@link RoutingPorts#weights} [B*L, experts of a token]. The caller masks
 * padding and must not read its rows of the outputs.
 */
public final class PrefillGraph {
    public static final String TOKENS = "tokens";
    public static final String POSITIONS = "positions";
    public static final String ROWS = "rows";
    public static final String PAST_ROWS = "past_rows";
    public static final String COS = "cos";
    public static final String SIN = "sin";
    public static final String MASK = "mask";
    public static final String WINDOW_MASK = "window_mask";

    private PrefillGraph() {}

    /**
     * @param onDevice whether it is for a device other than the CPU
     * @param hasPast  whether there are tokens before the new ones: P is above 0
     */
    public static ModelProto model(DecoderShape shape, Precision precision, boolean onDevice, boolean hasPast) {
        GraphBuilder graph = new GraphBuilder("prefill", onDevice);
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
                                Shape.of(batch, Dim.ONE, length, hasPast ? Dim.symbol("S") : length))))
                .toList();
        Operators ops = transformer.ops();
        Value slots = graph.input(DecodeGraph.SLOTS, ElementType.INT64, Shape.of(batch));
        Value rows = graph.input(ROWS, ElementType.INT64, Shape.of(batch, length));
        Value held = hasPast ? heldPlaces(ops, slots, shape) : rows;
        Dim kvHeads = Dim.of(shape.kvHeads());
        Shape cache = Shape.of(Dim.symbol("N"), kvHeads, Dim.symbol("C"), Dim.of(shape.headSize()));
        List<Value> caches = new ArrayList<>();
        List<Value> past = new ArrayList<>();
        for (int i = 0; i < 2 * shape.layers(); i++) {
            Value of = graph.input(DecodeGraph.cache(i / 2, i % 2), ElementType.FLOAT, cache);
            caches.add(of);
            if (hasPast) {
                past.add(ops.gatherRows(of, held));
            }
        }
        ExtendingAttention attention = new ExtendingAttention(
                shape, ops, new Attention.Rotation(positions, cos, sin, transformer::rounded), masks, past);
        // computations after the last keys and values reach no output; the runtime removes them
        RoutingNotes routing = new RoutingNotes();
        transformer
                .routed(routing)
                .layers(transformer.embed(transformer.ops().reshape(tokens, Shape.of(batch.times(length)))), attention);
        Value places = CacheGraph.places(ops, slots, rows, shape);
        for (int i = 0; i < caches.size(); i++) {
            graph.output(
                    DecodeGraph.grown(i / 2, i % 2),
                    ops.scatterRows(caches.get(i), places, attention.added().get(i)));
        }
        for (int layer = 0; layer < routing.experts().size() - 1; layer++) { // nothing follows the last keys and values
            graph.output(RoutingPorts.experts(layer), routing.experts().get(layer));
            graph.output(RoutingPorts.weights(layer), routing.weights().get(layer));
        }
        return graph.model();
    }

    private static Value heldPlaces(Operators ops, Value slots, DecoderShape shape) {
        Dim past = Dim.symbol("P");
        Value rows = ops.graph().input(PAST_ROWS, ElementType.INT64, Shape.of(past));
        return CacheGraph.places(ops, slots, ops.expand(ops.unsqueeze(rows, 0), Shape.of(slots.dim(0), past)), shape);
    }

    /**
     * Attention of several new tokens of each sequence to its past and to each other: {@link FullAttention} with
     * earlier keys and values in front.
     */
    static final class ExtendingAttention implements Attention {
        private final DecoderShape shape;
        private final Operators ops;
        private final Attention.Rotation rotation;
        private final List<Value> masks;
        private final List<Value> past;
        private final List<Value> added = new ArrayList<>();

        /**
         * @param rotation  of positions int64 [batch, length], of the new tokens
         * @param masks     of each layer, [batch, 1, length, reach], added to the scores; the reach is past and length together
         * @param past      keys and values of each layer, alternating, [batch, kvHeads, past, headSize]; empty if there are none
         */
        ExtendingAttention(
                DecoderShape shape, Operators ops, Attention.Rotation rotation, List<Value> masks, List<Value> past) {
            this.shape = shape;
            this.ops = ops;
            this.rotation = rotation;
            this.masks = masks;
            this.past = past;
        }

        @Override
        public Value attend(int layer, Value query, Value key, Value value) {
            Dim batch = rotation.positions().dim(0);
            Dim length = rotation.positions().dim(1);
            Dim reach = masks.get(layer).dim(3);
            Dim headSize = Dim.of(shape.headSize());
            Dim kvHeads = Dim.of(shape.kvHeads());
            Dim grouped = Dim.of(shape.headsPerKvHead()).times(length);
            Shape perHead = Shape.of(batch, Dim.of(shape.heads()), length, headSize);

            Value q = ops.reshape(
                    byHead(rotation.turned(ops, query, shape.heads()), shape.heads()),
                    Shape.of(batch, kvHeads, grouped, headSize));
            Value newKeys = byHead(rotation.turned(ops, key, shape.kvHeads()), shape.kvHeads());
            Value newValues = byHead(value, shape.kvHeads());
            added.add(newKeys);
            added.add(newValues);
            Value keys = past.isEmpty() ? newKeys : ops.concat(2, reach, past.get(2 * layer), newKeys);
            Value values = past.isEmpty() ? newValues : ops.concat(2, reach, past.get(2 * layer + 1), newValues);
            Value scores = ops.fusedMatMul(q, keys, false, true, (float) (1 / Math.sqrt(shape.headSize())));
            Value weights = ops.softmax(ops.add(ops.reshape(scores, perHead.with(-1, reach)), masks.get(layer)), -1);
            Value mixed = ops.matMul(ops.reshape(weights, scores.shape()), values);
            Value byPosition = ops.transpose(ops.reshape(mixed, perHead), 0, 2, 1, 3);
            return ops.reshape(byPosition, query.shape());
        }

        private Value byHead(Value x, int heads) {
            Shape split = Shape.of(
                    rotation.positions().dim(0), rotation.positions().dim(1), Dim.of(heads), Dim.of(shape.headSize()));
            return ops.transpose(ops.reshape(x, split), 0, 2, 1, 3);
        }

        /** Keys and values of the new tokens, alternating, [batch, kvHeads, length, headSize], once every layer has attended. */
        List<Value> added() {
            return added;
        }
    }
}
