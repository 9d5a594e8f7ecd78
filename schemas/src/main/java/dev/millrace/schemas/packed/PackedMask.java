package dev.millrace.schemas.packed;

import java.nio.ByteBuffer;

/**
 * {@code packed-int8} as a mask: element i is the byte i after the buffer's position, 1 where a token counts and
 * 0 where it does not.
 *
 * <p>Stateless and thread-safe; buffers are neither written nor moved.
 */
public final class PackedMask {
    private PackedMask() {}

    /** Packs a copy of the values into a new buffer. */
    public static ByteBuffer of(byte... values) {
        return ByteBuffer.wrap(values.clone());
    }

    public static int length(ByteBuffer packed) {
        return packed.remaining();
    }

    /**
     * Element {@code i}.
     *
     * @throws IndexOutOfBoundsException if {@code i} is not in {@code [0, length)}
     */
    public static byte get(ByteBuffer packed, int i) {
        PackedSize.requireIndex(i, packed.remaining());
        return packed.get(packed.position() + i);
    }

    /** Returns the number of elements that are not 0. */
    public static int count(ByteBuffer packed) {
        int count = 0;
        for (int at = packed.position(); at < packed.limit(); at++) {
            if (packed.get(at) != 0) {
                count++;
            }
        }
        return count;
    }

    /** A new array of all elements. */
    public static byte[] toArray(ByteBuffer packed) {
        byte[] values = new byte[packed.remaining()];
        packed.get(packed.position(), values);
        return values;
    }

    /** Copies all elements into {@code target} from index {@code at} on. */
    public static void copyTo(ByteBuffer packed, byte[] target, int at) {
        packed.get(packed.position(), target, at, packed.remaining());
    }
}
