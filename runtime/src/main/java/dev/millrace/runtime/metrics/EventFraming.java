package dev.millrace.runtime.metrics;

import java.io.BufferedInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.function.Consumer;
import java.util.zip.CRC32C;

/**
 * TensorFlow's framing of records: length as 8 bytes, its checksum as 4, the record, its checksum as 4, all little-endian. A checksum
 * is a CRC-32C, rotated and moved so that a checksum of bytes with checksums in them means something.
 */
final class EventFraming {
    private static final int HEAD = Long.BYTES + Integer.BYTES;
    private static final int MASK_DELTA = 0xa282ead8;
    private static final int MOST_BYTES = 16 << 20;

    private EventFraming() {}

    /** A record in its frame. */
    static byte[] framed(byte[] record) {
        ByteBuffer framed =
                ByteBuffer.allocate(HEAD + record.length + Integer.BYTES).order(ByteOrder.LITTLE_ENDIAN);
        framed.putLong(record.length);
        framed.putInt(masked(framed.array(), 0, Long.BYTES));
        framed.put(record);
        framed.putInt(masked(record, 0, record.length));
        return framed.array();
    }

    /** Tells every whole record of a file, in order; what a killed process has left half at the end is no record. */
    static void read(Path file, Consumer<byte[]> told) throws IOException {
        try (InputStream in = new BufferedInputStream(Files.newInputStream(file))) {
            byte[] head = new byte[HEAD];
            while (isWhole(in, head)) {
                ByteBuffer read = ByteBuffer.wrap(head).order(ByteOrder.LITTLE_ENDIAN);
                long length = read.getLong();
                if (read.getInt() != masked(head, 0, Long.BYTES) || length < 0 || length > MOST_BYTES) {
                    return;
                }
                byte[] record = new byte[(int) length];
                byte[] checksum = new byte[Integer.BYTES];
                if (!isWhole(in, record)
                        || !isWhole(in, checksum)
                        || ByteBuffer.wrap(checksum)
                                        .order(ByteOrder.LITTLE_ENDIAN)
                                        .getInt()
                                != masked(record, 0, record.length)) {
                    return;
                }
                told.accept(record);
            }
        }
    }

    private static boolean isWhole(InputStream in, byte[] bytes) throws IOException {
        return in.readNBytes(bytes, 0, bytes.length) == bytes.length;
    }

    private static int masked(byte[] bytes, int from, int length) {
        CRC32C crc = new CRC32C();
        crc.update(bytes, from, length);
        return Integer.rotateRight((int) crc.getValue(), 15) + MASK_DELTA;
    }
}
