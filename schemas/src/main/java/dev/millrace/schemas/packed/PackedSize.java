package dev.millrace.schemas.packed;

import java.nio.ByteBuffer;

/** The size rule of packed vectors. */
final class PackedSize {
    private PackedSize() {}

    static int elements(ByteBuffer packed, int elementBytes, String type) {
        int bytes = packed.remaining();
        if (bytes % elementBytes != 0) {
            throw new IllegalArgumentException(
                    type + " needs a multiple of " + elementBytes + " bytes, there are " + bytes);
        }
        return bytes / elementBytes;
    }

    static void requireIndex(int i, int length) {
        if (i < 0 || i >= length) {
            throw new IndexOutOfBoundsException("element " + i + " of a packed vector of " + length);
        }
    }
}
