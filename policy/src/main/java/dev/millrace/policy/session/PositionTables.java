package dev.millrace.policy.session;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.RopeScaling;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;

/**
 * Inputs that depend only on positions: {@code cos} and {@code sin} of {@code position * frequency} with the shape's
 * frequencies, and attention masks.
 *
 * <p>Angles are computed in double precision and rounded once, for accuracy at distant positions, and by StrictMath, so
 * that they are the same everywhere. Immutable: views are read-only in effect.
 */
final class PositionTables {
    /** Added to the score of a key that must not be seen; far below any score, and its exponential is exactly 0. */
    static final float MASKED = -1e9f;

    private final int rows;
    private final FloatBuffer cos;
    private final FloatBuffer sin;

    PositionTables(DecoderShape shape, int positions) {
        int half = shape.headSize() / 2;
        this.rows = positions;
        this.cos = direct(positions * half);
        this.sin = direct(positions * half);
        RopeScaling scaling = shape.traits().ropeScaling();
        double[] frequencies = scaling.frequencies(shape.ropeTheta(), shape.headSize());
        for (int position = 0; position < positions; position++) {
            for (int i = 0; i < half; i++) {
                double angle = position * frequencies[i];
                cos.put(position * half + i, (float) (scaling.attentionFactor() * StrictMath.cos(angle)));
                sin.put(position * half + i, (float) (scaling.attentionFactor() * StrictMath.sin(angle)));
            }
        }
    }

    int rows() {
        return rows;
    }

    FloatBuffer cos() {
        return cos.duplicate();
    }

    FloatBuffer sin() {
        return sin.duplicate();
    }

    /** [length, length]: 0 where the key is not after the query. */
    static FloatBuffer causalMask(int length) {
        return windowMask(length, length);
    }

    /** [length, length]: 0 where the key is not after the query, and less than a window before it. */
    static FloatBuffer windowMask(int length, int window) {
        FloatBuffer mask = direct(Math.multiplyExact(length, length));
        for (int query = 0; query < length; query++) {
            for (int key = 0; key < length; key++) {
                if (key > query || query - key >= window) {
                    mask.put(query * length + key, MASKED);
                }
            }
        }
        return mask;
    }

    static FloatBuffer direct(int floats) {
        int bytes = Math.multiplyExact(floats, Float.BYTES);
        return ByteBuffer.allocateDirect(bytes).order(ByteOrder.nativeOrder()).asFloatBuffer();
    }
}
