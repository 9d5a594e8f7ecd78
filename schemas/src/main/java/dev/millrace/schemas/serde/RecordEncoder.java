package dev.millrace.schemas.serde;

import java.nio.ByteBuffer;
import java.util.Arrays;
import org.apache.avro.io.BinaryData;
import org.apache.avro.io.BinaryEncoder;

/**
 * Encodes Avro's binary encoding directly into one growing array, after the wire format's header.
 *
 * <p>Avro's own encoders pass a vector through a buffer and a stream, and one of them moves the position of a
 * direct buffer that it writes; this one copies once and keeps the buffer's position. Not thread-safe.
 */
final class RecordEncoder extends BinaryEncoder {
    static final byte MAGIC = 0;
    static final int HEADER_BYTES = 1 + Integer.BYTES;
    private static final int SMALL_BYTES = 1 << 12;
    /** Largest array that is reused for the next record. */
    private static final int KEPT_BYTES = 4 << 20;

    private static final int LONGEST_NUMBER_BYTES = 10;

    private byte[] bytes = new byte[SMALL_BYTES];
    private int size;

    void begin(int schemaId) {
        bytes[0] = MAGIC;
        bytes[1] = (byte) (schemaId >>> 24);
        bytes[2] = (byte) (schemaId >>> 16);
        bytes[3] = (byte) (schemaId >>> 8);
        bytes[4] = (byte) schemaId;
        size = HEADER_BYTES;
    }

    byte[] toByteArray() {
        return Arrays.copyOf(bytes, size);
    }

    void end() {
        if (bytes.length > KEPT_BYTES) {
            bytes = new byte[SMALL_BYTES];
        }
        size = 0;
    }

    private void reserve(int more) {
        int needed = Math.addExact(size, more);
        if (needed > bytes.length) {
            bytes = Arrays.copyOf(bytes, (int) Math.max(needed, Math.min(Integer.MAX_VALUE - 8, 2L * bytes.length)));
        }
    }

    @Override
    protected void writeZero() {
        reserve(1);
        bytes[size++] = 0;
    }

    @Override
    public void writeBoolean(boolean value) {
        reserve(1);
        bytes[size++] = (byte) (value ? 1 : 0);
    }

    @Override
    public void writeInt(int value) {
        reserve(LONGEST_NUMBER_BYTES);
        size += BinaryData.encodeInt(value, bytes, size);
    }

    @Override
    public void writeLong(long value) {
        reserve(LONGEST_NUMBER_BYTES);
        size += BinaryData.encodeLong(value, bytes, size);
    }

    @Override
    public void writeFloat(float value) {
        reserve(Float.BYTES);
        size += BinaryData.encodeFloat(value, bytes, size);
    }

    @Override
    public void writeDouble(double value) {
        reserve(Double.BYTES);
        size += BinaryData.encodeDouble(value, bytes, size);
    }

    @Override
    public void writeFixed(byte[] source, int start, int length) {
        reserve(length);
        System.arraycopy(source, start, bytes, size, length);
        size += length;
    }

    @Override
    public void writeFixed(ByteBuffer source) {
        int length = source.remaining();
        reserve(length);
        source.get(source.position(), bytes, size, length);
        size += length;
    }

    @Override
    public void flush() {
        // everything is already in the array
    }

    @Override
    public int bytesBuffered() {
        return 0;
    }
}
