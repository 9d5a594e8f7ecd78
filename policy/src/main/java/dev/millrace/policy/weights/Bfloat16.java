package dev.millrace.policy.weights;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;

/** Binary32 to bfloat16 and back. */
public final class Bfloat16 {
    private static final int NAN = 0x7fc0;

    private Bfloat16() {}

    /** The nearest bfloat16, ties to even; infinite for what is nearer to that. */
    public static short of(float value) {
        int bits = Float.floatToRawIntBits(value);
        return Float.isNaN(value) ? (short) NAN : (short) (bits + 0x7fff + (bits >>> 16 & 1) >>> 16);
    }

    /** The nearest of each value from position to limit, little-endian, in memory of its own. */
    public static ByteBuffer of(FloatBuffer values) {
        ByteBuffer bytes = ByteBuffer.allocate(values.remaining() * Short.BYTES).order(ByteOrder.LITTLE_ENDIAN);
        for (int i = values.position(); i < values.limit(); i++) {
            bytes.putShort(of(values.get(i)));
        }
        return bytes.flip();
    }

    /** What a bfloat16 is, exactly. */
    public static float value(short bits) {
        return Float.intBitsToFloat(bits << Short.SIZE);
    }

    /** Whether a bfloat16 holds a value exactly. */
    public static boolean holds(float value) {
        return (Float.floatToRawIntBits(value) & 0xffff) == 0;
    }
}
