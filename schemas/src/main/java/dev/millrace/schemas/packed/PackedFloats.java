package dev.millrace.schemas.packed;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * {@code packed-float32}: element i is the little-endian float32 at byte {@code 4 i} after the buffer's position.
 *
 * <p>Stateless and thread-safe; buffers are neither written nor moved. Every method throws IllegalArgumentException if
 * the buffer's size is not a multiple of four. Values are not checked; the reader of a field decides whether NaN is
 * allowed.
 */
public final class PackedFloats {
    private static final VarHandle ELEMENT =
            MethodHandles.byteBufferViewVarHandle(float[].class, ByteOrder.LITTLE_ENDIAN);

    private PackedFloats() {}

    /** Packs a copy of the values into a new buffer. */
    public static ByteBuffer of(float... values) {
        ByteBuffer packed = ByteBuffer.wrap(new byte[Math.multiplyExact(values.length, Float.BYTES)]);
        packed.duplicate().order(ByteOrder.LITTLE_ENDIAN).asFloatBuffer().put(values);
        return packed;
    }

    public static int length(ByteBuffer packed) {
        return PackedSize.elements(packed, Float.BYTES, "packed-float32");
    }

    /**
     * Element {@code i}.
     *
     * @throws IndexOutOfBoundsException if {@code i} is not in {@code [0, length)}
     */
    public static float get(ByteBuffer packed, int i) {
        PackedSize.requireIndex(i, length(packed));
        return (float) ELEMENT.get(packed, packed.position() + i * Float.BYTES);
    }

    /** A new array of all elements. */
    public static float[] toArray(ByteBuffer packed) {
        float[] values = new float[length(packed)];
        copyTo(packed, values, 0);
        return values;
    }

    /** Copies all elements into {@code target} from index {@code at} on. */
    public static void copyTo(ByteBuffer packed, float[] target, int at) {
        packed.duplicate().order(ByteOrder.LITTLE_ENDIAN).asFloatBuffer().get(target, at, length(packed));
    }
}
