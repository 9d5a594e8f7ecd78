package dev.millrace.policy.decoder;

import dev.millrace.policy.onnx.Dim;
import dev.millrace.policy.onnx.Operators;
import dev.millrace.policy.onnx.Shape;
import dev.millrace.policy.onnx.Value;
import java.util.function.UnaryOperator;

/** How the tokens of a graph attend to each other: the one part in which scoring and decoding differ. */
interface Attention {

    /**
     * Computes attention from the projections of one layer, before the output projection.
     *
     * @param query [rows, heads*headSize], positions not yet applied
     * @param key   [rows, kvHeads*headSize], positions not yet applied
     * @param value [rows, kvHeads*headSize]
     * @return [rows, heads*headSize]
     */
    Value attend(int layer, Value query, Value key, Value value);

    /**
     * Applies rotary positions to queries and keys.
     *
     * @param positions int64 [batch, length], rows of the tables
     * @param cos       [positions, headSize/2], as {@code sin}
     */
    record Rotation(Value positions, Value cos, Value sin, UnaryOperator<Value> rounding) {

        /** @return [batch, length, heads*headSize] */
        Value turned(Operators ops, Value x, int heads) {
            Dim width = Dim.of(2L * heads * cos.dim(1).length());
            Shape sequences = Shape.of(positions.dim(0), positions.dim(1), width);
            return rounding.apply(ops.rotary(ops.reshape(x, sequences), positions, cos, sin));
        }
    }
}
