package dev.millrace.policy.decoder;

import dev.millrace.policy.onnx.Dim;
import dev.millrace.policy.onnx.Operators;
import dev.millrace.policy.onnx.Shape;
import dev.millrace.policy.onnx.Value;
import java.util.ArrayList;
import java.util.List;
import java.util.function.UnaryOperator;

/**
 * Attention of one new token per slot to its slot's past.
 *
 * <p>The past lies in two parts: the cache, which does not change during a call, and a window that grows by one key and
 * value per step of the call. So a step copies the window, which is as long as the call, and never the cache, which is as
 * long as the sequences.
 */
final class CachedAttention implements Attention {
    private final DecoderShape shape;
    private final Operators ops;
    private final Value positions;
    private final Value cos;
    private final Value sin;
    private final List<Value> pastMasks;
    private final List<Value> past;
    private final List<Value> window;
    private final Dim grown;
    private final UnaryOperator<Value> rounding;
    private final List<Value> grownWindow = new ArrayList<>();

    /**
     * @param positions int64 [slots, 1], the position of the new token
     * @param pastMasks of each layer, [slots, 1, 1, capacity], added to the scores of the cache
     * @param past      keys and values of each layer, alternating, [slots, kvHeads, capacity, headSize]
     * @param window    likewise, [slots, kvHeads, steps so far, headSize]
     * @param grown     length of the window with the new token in it
     * @param rounding  of queries and keys that are turned
     */
    CachedAttention(
            DecoderShape shape,
            Operators ops,
            Value positions,
            Value cos,
            Value sin,
            List<Value> pastMasks,
            List<Value> past,
            List<Value> window,
            Dim grown,
            UnaryOperator<Value> rounding) {
        this.shape = shape;
        this.ops = ops;
        this.positions = positions;
        this.cos = cos;
        this.sin = sin;
        this.pastMasks = pastMasks;
        this.past = past;
        this.window = window;
        this.grown = grown;
        this.rounding = rounding;
    }

    @Override
    public Value attend(int layer, Value query, Value key, Value value) {
        Dim slots = positions.dim(0);
        Dim kvHeads = Dim.of(shape.kvHeads());
        Dim headSize = Dim.of(shape.headSize());
        Shape grouped = Shape.of(slots, kvHeads, Dim.of(shape.headsPerKvHead()), headSize);
        Shape single = Shape.of(slots, kvHeads, Dim.ONE, headSize);
        float scale = (float) (1 / Math.sqrt(shape.headSize()));

        Value q = ops.reshape(rotated(query, shape.heads()), grouped);
        Value keys = ops.concat(2, grown, window.get(2 * layer), ops.reshape(rotated(key, shape.kvHeads()), single));
        Value values = ops.concat(2, grown, window.get(2 * layer + 1), ops.reshape(value, single));
        grownWindow.add(keys);
        grownWindow.add(values);

        Value pastKeys = past.get(2 * layer);
        long capacity = pastKeys.dim(2).length();
        Value pastScores = ops.add(ops.fusedMatMul(q, pastKeys, false, true, scale), pastMasks.get(layer));
        Value newScores = ops.fusedMatMul(q, keys, false, true, scale);
        Value weights = ops.softmax(ops.concat(3, Dim.symbol("reach"), pastScores, newScores), -1);
        Value mixed = ops.add(
                ops.matMul(ops.slice(weights, 3, 0, capacity), past.get(2 * layer + 1)),
                ops.matMul(ops.sliceFrom(weights, 3, capacity, grown), values));
        return ops.reshape(mixed, query.shape());
    }

    private Value rotated(Value x, int heads) {
        Shape sequences = Shape.of(positions.dim(0), Dim.ONE, Dim.of((long) heads * shape.headSize()));
        return rounding.apply(ops.rotary(ops.reshape(x, sequences), positions, cos, sin));
    }

    /** The windows with the new token in them, once every layer has attended. */
    List<Value> grownWindow() {
        return grownWindow;
    }
}
