package dev.millrace.policy.decoder;

import dev.millrace.policy.onnx.Dim;
import dev.millrace.policy.onnx.Operators;
import dev.millrace.policy.onnx.Shape;
import dev.millrace.policy.onnx.Value;
import java.util.ArrayList;
import java.util.List;
import java.util.function.UnaryOperator;

/**
 * Attention of several new tokens of each sequence to its past and to each other: {@link FullAttention} with keys and values
 * in front that were computed before.
 */
final class ExtendingAttention implements Attention {
    private final DecoderShape shape;
    private final Operators ops;
    private final Value positions;
    private final Value cos;
    private final Value sin;
    private final List<Value> masks;
    private final List<Value> past;
    private final UnaryOperator<Value> rounding;
    private final List<Value> added = new ArrayList<>();

    /**
     * @param positions int64 [batch, length], of the new tokens
     * @param masks     of each layer, [batch, 1, length, reach], added to the scores; the reach is past and length together
     * @param past      keys and values of each layer, alternating, [batch, kvHeads, past, headSize]
     * @param rounding  of queries and keys that are turned
     */
    ExtendingAttention(
            DecoderShape shape,
            Operators ops,
            Value positions,
            Value cos,
            Value sin,
            List<Value> masks,
            List<Value> past,
            UnaryOperator<Value> rounding) {
        this.shape = shape;
        this.ops = ops;
        this.positions = positions;
        this.cos = cos;
        this.sin = sin;
        this.masks = masks;
        this.past = past;
        this.rounding = rounding;
    }

    @Override
    public Value attend(int layer, Value query, Value key, Value value) {
        Dim batch = positions.dim(0);
        Dim length = positions.dim(1);
        Dim reach = masks.get(layer).dim(3);
        Dim headSize = Dim.of(shape.headSize());
        Dim kvHeads = Dim.of(shape.kvHeads());
        Dim grouped = Dim.of(shape.headsPerKvHead()).times(length);
        Shape perHead = Shape.of(batch, Dim.of(shape.heads()), length, headSize);

        Value q = ops.reshape(
                byHead(rotated(query, shape.heads()), shape.heads()), Shape.of(batch, kvHeads, grouped, headSize));
        Value newKeys = byHead(rotated(key, shape.kvHeads()), shape.kvHeads());
        Value newValues = byHead(value, shape.kvHeads());
        added.add(newKeys);
        added.add(newValues);
        Value keys = ops.concat(2, reach, past.get(2 * layer), newKeys);
        Value values = ops.concat(2, reach, past.get(2 * layer + 1), newValues);
        Value scores = ops.fusedMatMul(q, keys, false, true, (float) (1 / Math.sqrt(shape.headSize())));
        Value weights = ops.softmax(ops.add(ops.reshape(scores, perHead.with(-1, reach)), masks.get(layer)), -1);
        Value mixed = ops.matMul(ops.reshape(weights, scores.shape()), values);
        Value byPosition = ops.transpose(ops.reshape(mixed, perHead), 0, 2, 1, 3);
        return ops.reshape(byPosition, query.shape());
    }

    private Value rotated(Value x, int heads) {
        Shape sequences = Shape.of(positions.dim(0), positions.dim(1), Dim.of((long) heads * shape.headSize()));
        return rounding.apply(ops.rotary(ops.reshape(x, sequences), positions, cos, sin));
    }

    private Value byHead(Value x, int heads) {
        Shape split = Shape.of(positions.dim(0), positions.dim(1), Dim.of(heads), Dim.of(shape.headSize()));
        return ops.transpose(ops.reshape(x, split), 0, 2, 1, 3);
    }

    /** Keys and values of the new tokens, alternating, [batch, kvHeads, length, headSize], once every layer has attended. */
    List<Value> added() {
        return added;
    }
}
