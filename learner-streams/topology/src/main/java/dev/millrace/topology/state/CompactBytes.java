package dev.millrace.topology.state;

import java.nio.ByteBuffer;
import java.util.Arrays;

/**
 * Writes and reads the values of state stores: a format byte, then numbers of as few bytes as they need (seven bits
 * each, lowest first; signed numbers zigzagged). Every byte of these is written to a changelog for every rollout.
 */
public final class CompactBytes {
    private static final int LONGEST_NUMBER_BYTES = 10;

    private CompactBytes() {}

    /** @throws java.nio.BufferUnderflowException if the bytes end too early */
    static long number(ByteBuffer bytes) {
        long raw = 0;
        for (int shift = 0; ; shift += 7) {
            byte b = bytes.get();
            raw |= (b & 0x7fL) << shift;
            if (b >= 0) {
                return (raw >>> 1) ^ -(raw & 1);
            }
        }
    }

    /** Writes one value. */
    public static final class Writer {
        private byte[] bytes;
        private int size;

        /** @param format first byte of the value, so that a later version can tell what it reads */
        public Writer(byte format) {
            this(new byte[0]);
            put(format);
        }

        /** Goes on after these bytes. */
        Writer(byte[] begun) {
            bytes = Arrays.copyOf(begun, Math.max(32, begun.length));
            size = begun.length;
        }

        void put(int value) {
            reserve(1);
            bytes[size++] = (byte) value;
        }

        int size() {
            return size;
        }

        /** Forgets what was written after the first {@code length} bytes. */
        void truncate(int length) {
            size = length;
        }

        public Writer number(long value) {
            reserve(LONGEST_NUMBER_BYTES);
            long rest = (value << 1) ^ (value >> 63);
            while ((rest & ~0x7fL) != 0) {
                bytes[size++] = (byte) (rest & 0x7f | 0x80);
                rest >>>= 7;
            }
            bytes[size++] = (byte) rest;
            return this;
        }

        /** A length and the bytes. */
        public Writer bytes(byte[] value) {
            number(value.length);
            reserve(value.length);
            System.arraycopy(value, 0, bytes, size, value.length);
            size += value.length;
            return this;
        }

        public byte[] toByteArray() {
            return Arrays.copyOf(bytes, size);
        }

        private void reserve(int more) {
            if (size + more > bytes.length) {
                bytes = Arrays.copyOf(bytes, Math.max(2 * bytes.length, size + more));
            }
        }
    }

    /** Reads one value. */
    public static final class Reader {
        private final ByteBuffer bytes;

        /** @throws IllegalStateException if the value is of another format: the state was written by another version */
        public Reader(byte[] value, byte format, String store) {
            bytes = ByteBuffer.wrap(value);
            byte found = bytes.get();
            if (found != format) {
                throw new IllegalStateException(
                        "store " + store + " holds a value of format " + found + ", this version reads format " + format
                                + "; reset the application's state, or run the version that wrote it");
            }
        }

        public long number() {
            return CompactBytes.number(bytes);
        }

        /** True if the value has not ended here. */
        public boolean hasMore() {
            return bytes.hasRemaining();
        }

        public byte[] bytes() {
            byte[] value = new byte[(int) number()];
            bytes.get(value);
            return value;
        }
    }
}
