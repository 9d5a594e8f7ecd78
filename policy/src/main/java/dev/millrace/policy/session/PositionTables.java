package dev.millrace.policy.session;

import dev.millrace.policy.decoder.DecoderShape;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;

/**
 * What depends on positions alone: {@code cos} and {@code sin} of {@code position * theta^(-2i/headSize)}, and the causal
 * mask.
 *
 * <p>Angles are taken in double precision and rounded once, so that distant positions keep theirs, and by StrictMath, so
 * that they are the same everywhere. Immutable: views are read-only in effect.
 */
final class PositionTables {
    /** Added to the score of a key that must not be seen; far below any score, and its exponential is exactly 0. */
    static final float MASKED = -1e9f;

    private final FloatBuffer cos;
    private final FloatBuffer sin;

    PositionTables(DecoderShape shape, int positions) {
        int half = shape.headSize() / 2;
        this.cos = direct(positions * half);
        this.sin = direct(positions * half);
        for (int position = 0; position < positions; position++) {
            for (int i = 0; i < half; i++) {
                double angle = position * StrictMath.pow(shape.ropeTheta(), -2.0 * i / shape.headSize());
                cos.put(position * half + i, (float) StrictMath.cos(angle));
                sin.put(position * half + i, (float) StrictMath.sin(angle));
            }
        }
    }

    FloatBuffer cos() {
        return cos.duplicate();
    }

    FloatBuffer sin() {
        return sin.duplicate();
    }

    /** [length, length]: 0 where the key is not after the query. */
    static FloatBuffer causalMask(int length) {
        FloatBuffer mask = direct(Math.multiplyExact(length, length));
        for (int query = 0; query < length; query++) {
            for (int key = query + 1; key < length; key++) {
                mask.put(query * length + key, MASKED);
            }
        }
        return mask;
    }

    static FloatBuffer direct(int floats) {
        int bytes = Math.multiplyExact(floats, Float.BYTES);
        return ByteBuffer.allocateDirect(bytes).order(ByteOrder.nativeOrder()).asFloatBuffer();
    }
}
