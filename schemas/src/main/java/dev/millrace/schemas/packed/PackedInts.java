package dev.millrace.schemas.packed;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * {@code packed-int32}: element i is the little-endian int32 at byte {@code 4 i} after the buffer's position.
 *
 * <p>Stateless and thread-safe; buffers are neither written nor moved. Every method throws IllegalArgumentException if
 * the buffer's size is not a multiple of four.
 */
public final class PackedInts {
    private static final VarHandle ELEMENT =
            MethodHandles.byteBufferViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);

    private PackedInts() {}

    /** Packs a copy of the values into a new buffer. */
    public static ByteBuffer of(int... values) {
        ByteBuffer packed = ByteBuffer.wrap(new byte[Math.multiplyExact(values.length, Integer.BYTES)]);
        packed.duplicate().order(ByteOrder.LITTLE_ENDIAN).asIntBuffer().put(values);
        return packed;
    }

    public static int length(ByteBuffer packed) {
        return PackedSize.elements(packed, Integer.BYTES, "packed-int32");
    }

    /**
     * Element {@code i}.
     *
     * @throws IndexOutOfBoundsException if {@code i} is not in {@code [0, length)}
     */
    public static int get(ByteBuffer packed, int i) {
        PackedSize.requireIndex(i, length(packed));
        return (int) ELEMENT.get(packed, packed.position() + i * Integer.BYTES);
    }

    /** A new array of all elements. */
    public static int[] toArray(ByteBuffer packed) {
        int[] values = new int[length(packed)];
        copyTo(packed, values, 0);
        return values;
    }

    /** Copies all elements into {@code target} from index {@code at} on. */
    public static void copyTo(ByteBuffer packed, int[] target, int at) {
        packed.duplicate().order(ByteOrder.LITTLE_ENDIAN).asIntBuffer().get(target, at, length(packed));
    }
}
