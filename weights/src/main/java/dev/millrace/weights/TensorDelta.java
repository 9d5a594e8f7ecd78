package dev.millrace.weights;

import com.github.luben.zstd.Zstd;
import com.github.luben.zstd.ZstdException;
import dev.millrace.policy.weights.Dtype;
import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Optional;

/**
 * The exact difference of two tensors: {@code apply(base, encode(base, next))} is {@code next}, bit for bit.
 *
 * <p>A value's bits, read as an int32 (int16 for half-width values), differ from the base's by {@code d = next - base}
 * (wrapping). The difference is small when the value moved little, for either sign of the value. Zigzag
 * {@code (d << 1) ^ (d >> 31)}, or {@code >> 15}, maps small differences of either sign to small numbers. Their bytes
 * are sorted into planes, the highest first, since the high bytes are nearly all zero. Each block of
 * {@value #BLOCK_VALUES} values is one zstd frame:
 *
 * <pre>
 * for each block of values, in order:
 *   int32 LE  n, the size of the frame
 *   n bytes   zstd frame of 4 or 2 planes: highest bytes of all zigzag values of the block, ..., lowest bytes
 * </pre>
 *
 * <p>Unchanged values cost almost no bytes, so there is no list of positions. The encoding assumes nothing about the
 * meaning of the bits: NaNs keep their payload, and -0 is not 0.
 */
final class TensorDelta {
    static final int BLOCK_VALUES = 1 << 18;
    /** Higher levels gain under one percent on deltas of training and take a quarter longer. */
    private static final int LEVEL = 1;

    private TensorDelta() {}

    /**
     * The delta from {@code base} to {@code next}, both little-endian from position to limit and of one size.
     *
     * @return empty if it would not be smaller than {@code next} itself
     */
    static Optional<ByteBuffer> encode(ByteBuffer base, ByteBuffer next, Dtype dtype) {
        requireSameSize(base, next.remaining(), dtype);
        int width = dtype.bytes();
        ByteBuffer from = base.duplicate().order(ByteOrder.LITTLE_ENDIAN);
        ByteBuffer to = next.duplicate().order(ByteOrder.LITTLE_ENDIAN);
        byte[] planes = new byte[Math.min(BLOCK_VALUES * width, next.remaining())];
        byte[] frame = new byte[Integer.BYTES + (int) Zstd.compressBound(planes.length)];
        ByteBuffer size = ByteBuffer.wrap(frame).order(ByteOrder.LITTLE_ENDIAN);
        // grows with the delta: preallocating the tensor's size would hold a third copy for a few percent of it
        ByteArrayOutputStream delta = new ByteArrayOutputStream(frame.length);
        while (to.hasRemaining()) {
            int values = Math.min(BLOCK_VALUES, to.remaining() / width);
            if (dtype == Dtype.F32) {
                split(from, to, values, planes);
            } else {
                splitHalf(from, to, values, planes);
            }
            int encoded = (int) Zstd.compressByteArray(
                    frame, Integer.BYTES, frame.length - Integer.BYTES, planes, 0, values * width, LEVEL);
            if ((long) delta.size() + encoded + Integer.BYTES >= next.remaining()) {
                return Optional.empty();
            }
            size.putInt(0, encoded);
            delta.write(frame, 0, Integer.BYTES + encoded);
        }
        return delta.size() == 0 ? Optional.empty() : Optional.of(ByteBuffer.wrap(delta.toByteArray()));
    }

    private static void split(ByteBuffer from, ByteBuffer to, int values, byte[] planes) {
        for (int i = 0; i < values; i++) {
            int difference = to.getInt() - from.getInt();
            int zigzag = (difference << 1) ^ (difference >> 31);
            planes[i] = (byte) (zigzag >>> 24);
            planes[values + i] = (byte) (zigzag >>> 16);
            planes[2 * values + i] = (byte) (zigzag >>> 8);
            planes[3 * values + i] = (byte) zigzag;
        }
    }

    private static void splitHalf(ByteBuffer from, ByteBuffer to, int values, byte[] planes) {
        for (int i = 0; i < values; i++) {
            short difference = (short) (to.getShort() - from.getShort());
            int zigzag = (difference << 1) ^ (difference >> 15);
            planes[i] = (byte) (zigzag >>> 8);
            planes[values + i] = (byte) zigzag;
        }
    }

    /**
     * Applies a delta to its base, into a new heap buffer.
     *
     * @throws IllegalArgumentException if the delta does not fit the base's size; only a hash of the result can verify
     * its content
     */
    static ByteBuffer apply(ByteBuffer base, ByteBuffer delta, Dtype dtype) {
        int width = dtype.bytes();
        ByteBuffer from = base.duplicate().order(ByteOrder.LITTLE_ENDIAN);
        ByteBuffer in = delta.duplicate().order(ByteOrder.LITTLE_ENDIAN);
        ByteBuffer next = ByteBuffer.allocate(base.remaining()).order(ByteOrder.LITTLE_ENDIAN);
        byte[] planes = new byte[Math.min(BLOCK_VALUES * width, next.remaining())];
        while (next.hasRemaining()) {
            int values = Math.min(BLOCK_VALUES, next.remaining() / width);
            decompress(in, planes, values * width);
            if (dtype == Dtype.F32) {
                join(from, planes, values, next);
            } else {
                joinHalf(from, planes, values, next);
            }
        }
        if (in.hasRemaining()) {
            throw new IllegalArgumentException(in.remaining() + " bytes are left behind the delta's last block");
        }
        return next.flip();
    }

    private static void join(ByteBuffer from, byte[] planes, int values, ByteBuffer next) {
        for (int i = 0; i < values; i++) {
            int zigzag = planes[i] << 24
                    | (planes[values + i] & 0xff) << 16
                    | (planes[2 * values + i] & 0xff) << 8
                    | planes[3 * values + i] & 0xff;
            next.putInt(from.getInt() + ((zigzag >>> 1) ^ -(zigzag & 1)));
        }
    }

    private static void joinHalf(ByteBuffer from, byte[] planes, int values, ByteBuffer next) {
        for (int i = 0; i < values; i++) {
            int zigzag = (planes[i] & 0xff) << 8 | planes[values + i] & 0xff;
            next.putShort((short) (from.getShort() + ((zigzag >>> 1) ^ -(zigzag & 1))));
        }
    }

    private static void decompress(ByteBuffer in, byte[] planes, int expected) {
        if (in.remaining() < Integer.BYTES) {
            throw new IllegalArgumentException("the delta ends where a block of " + expected + " bytes was due");
        }
        int size = in.getInt();
        if (size < 1 || size > in.remaining()) {
            throw new IllegalArgumentException(
                    "a block of the delta claims " + size + " bytes, and " + in.remaining() + " are left");
        }
        byte[] frame = new byte[size];
        in.get(frame);
        long found;
        try {
            found = Zstd.decompressByteArray(planes, 0, expected, frame, 0, size);
        } catch (ZstdException e) { // more than expected, or not a frame
            throw new IllegalArgumentException(
                    "a block of the delta does not decompress to " + expected + " bytes: " + e.getMessage(), e);
        }
        if (found != expected) {
            throw new IllegalArgumentException(
                    "a block of the delta holds " + found + " bytes where " + expected + " were due");
        }
    }

    private static void requireSameSize(ByteBuffer base, int bytes, Dtype dtype) {
        if (base.remaining() != bytes || bytes % dtype.bytes() != 0) {
            throw new IllegalArgumentException("a delta is between tensors of one size in whole " + dtype + " values: "
                    + bytes + " bytes against a base of " + base.remaining());
        }
    }
}
