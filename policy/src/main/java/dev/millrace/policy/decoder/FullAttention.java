package dev.millrace.policy.decoder;

import dev.millrace.policy.onnx.Dim;
import dev.millrace.policy.onnx.Operators;
import dev.millrace.policy.onnx.Shape;
import dev.millrace.policy.onnx.Value;
import java.util.List;

/**
 * Causal attention of whole sequences: {@code softmax(q k^T / sqrt(headSize) + mask) v}, query heads grouped over key heads.
 *
 * <p>Keys are never repeated. The query heads of one group are concatenated and multiplied with their key head in one
 * product. This also makes the gradient of the keys a sum over the group without further nodes.
 */
final class FullAttention implements Attention {
    private final DecoderShape shape;
    private final Operators ops;
    private final Rotation rotation;
    private final List<Value> masks;

    /**
     * @param rotation  of positions int64 [batch, length]
     * @param masks     of each layer, [length, length], added to the scores: 0 or a large negative number
     */
    FullAttention(DecoderShape shape, Operators ops, Rotation rotation, List<Value> masks) {
        this.shape = shape;
        this.ops = ops;
        this.rotation = rotation;
        this.masks = masks;
    }

    @Override
    public Value attend(int layer, Value query, Value key, Value value) {
        Dim batch = rotation.positions().dim(0);
        Dim length = rotation.positions().dim(1);
        Dim kvHeads = Dim.of(shape.kvHeads());
        Dim headSize = Dim.of(shape.headSize());
        Shape perKeyHead =
                Shape.of(batch, kvHeads, Dim.of(shape.headsPerKvHead()).times(length), headSize);
        Shape scoresPerHead = Shape.of(batch, Dim.of(shape.heads()), length, length);

        Value q = ops.reshape(byHead(rotation.turned(ops, query, shape.heads()), shape.heads()), perKeyHead);
        Value k = byHead(rotation.turned(ops, key, shape.kvHeads()), shape.kvHeads());
        Value v = byHead(value, shape.kvHeads());
        Value scores = ops.fusedMatMul(q, k, false, true, (float) (1 / Math.sqrt(shape.headSize())));
        Value weights = ops.softmax(ops.add(ops.reshape(scores, scoresPerHead), masks.get(layer)), -1);
        Value mixed = ops.matMul(ops.reshape(weights, scores.shape()), v);
        Value byPosition = ops.transpose(ops.reshape(mixed, scoresPerHead.with(-1, headSize)), 0, 2, 1, 3);
        return ops.reshape(byPosition, query.shape());
    }

    private Value byHead(Value x, int heads) {
        Shape split = Shape.of(
                rotation.positions().dim(0), rotation.positions().dim(1), Dim.of(heads), Dim.of(shape.headSize()));
        return ops.transpose(ops.reshape(x, split), 0, 2, 1, 3);
    }
}
