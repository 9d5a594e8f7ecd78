package dev.millrace.policy.weights;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;

/** Binary32 to bfloat16 and back. */
public final class Bfloat16 {
    private static final int NAN = 0x7fc0;

    private Bfloat16() {}

    /** The nearest bfloat16, ties to even; overflows to infinity. */
    public static short of(float value) {
        int bits = Float.floatToRawIntBits(value);
        return Float.isNaN(value) ? (short) NAN : (short) (bits + 0x7fff + (bits >>> 16 & 1) >>> 16);
    }

    /** Rounds each value from position to limit into a new little-endian buffer. */
    public static ByteBuffer of(FloatBuffer values) {
        ByteBuffer bytes = ByteBuffer.allocate(values.remaining() * Short.BYTES).order(ByteOrder.LITTLE_ENDIAN);
        for (int i = values.position(); i < values.limit(); i++) {
            bytes.putShort(of(values.get(i)));
        }
        return bytes.flip();
    }

    /** Converts a bfloat16 to float32, exactly. */
    public static float value(short bits) {
        return Float.intBitsToFloat(bits << Short.SIZE);
    }

    public static boolean holds(float value) {
        return (Float.floatToRawIntBits(value) & 0xffff) == 0;
    }
}
