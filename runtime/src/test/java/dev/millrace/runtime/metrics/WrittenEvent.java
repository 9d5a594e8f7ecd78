package dev.millrace.runtime.metrics;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

/** An event as an outsider reads it: by the bytes of the formats, with nothing of what writes them. */
public record WrittenEvent(double wallSeconds, long step, String version, Map<String, Float> values) {

    /**
     * As TensorBoard reads a folder: the files in the order of their names, each up to its end or an invalid record.
     */
    public static List<WrittenEvent> ofRun(Path folder) throws IOException {
        List<WrittenEvent> events = new ArrayList<>();
        try (Stream<Path> files = Files.list(folder)) {
            for (Path file : files.filter(each -> each.getFileName().toString().contains("tfevents"))
                    .sorted()
                    .toList()) {
                events.addAll(allOf(file));
            }
        }
        return events;
    }

    /** The whole records of a file; what does not fit ends it. */
    private static List<WrittenEvent> allOf(Path file) throws IOException {
        ByteBuffer bytes = ByteBuffer.wrap(Files.readAllBytes(file)).order(ByteOrder.LITTLE_ENDIAN);
        List<WrittenEvent> events = new ArrayList<>();
        while (bytes.remaining() >= 16 && bytes.remaining() >= bytes.getLong(bytes.position()) + 16) {
            byte[] length = take(bytes, 8);
            int lengthChecksum = bytes.getInt();
            byte[] record = take(bytes, (int)
                    ByteBuffer.wrap(length).order(ByteOrder.LITTLE_ENDIAN).getLong());
            if (lengthChecksum != checksum(length) || bytes.getInt() != checksum(record)) {
                throw new AssertionError("a checksum of " + file + " is wrong before byte " + bytes.position());
            }
            events.add(of(ByteBuffer.wrap(record).order(ByteOrder.LITTLE_ENDIAN)));
        }
        return events;
    }

    private static WrittenEvent of(ByteBuffer event) {
        double wallSeconds = Double.NaN;
        long step = 0;
        String version = "";
        Map<String, Float> values = new LinkedHashMap<>();
        while (event.hasRemaining()) {
            switch (event.get()) {
                case 1 << 3 | 1 -> wallSeconds = event.getDouble();
                case 2 << 3 -> step = varint(event);
                case 3 << 3 | 2 -> version = text(event);
                case 5 << 3 | 2 -> {
                    ByteBuffer summary = part(event);
                    while (summary.hasRemaining()) {
                        require(summary.get() == (1 << 3 | 2), "a summary holds values");
                        ByteBuffer value = part(summary);
                        require(value.get() == (1 << 3 | 2), "a value begins with its tag");
                        String tag = text(value);
                        require(value.get() == (2 << 3 | 5), "a value is a number of 32 bits");
                        require(values.put(tag, value.getFloat()) == null, tag + " stands once");
                    }
                }
                default -> throw new AssertionError("an unknown field");
            }
        }
        return new WrittenEvent(wallSeconds, step, version, values);
    }

    private static void require(boolean holds, String what) {
        if (!holds) {
            throw new AssertionError(what);
        }
    }

    private static byte[] take(ByteBuffer from, int bytes) {
        byte[] taken = new byte[bytes];
        from.get(taken);
        return taken;
    }

    private static ByteBuffer part(ByteBuffer from) {
        return ByteBuffer.wrap(take(from, (int) varint(from))).order(ByteOrder.LITTLE_ENDIAN);
    }

    private static String text(ByteBuffer from) {
        return new String(take(from, (int) varint(from)), StandardCharsets.UTF_8);
    }

    private static long varint(ByteBuffer from) {
        long value = 0;
        for (int shift = 0; ; shift += 7) {
            byte next = from.get();
            value |= (long) (next & 0x7f) << shift;
            if (next >= 0) {
                return value;
            }
        }
    }

    /** CRC-32C bit by bit, rotated right by 15 and moved by TensorFlow's constant. */
    private static int checksum(byte[] bytes) {
        int crc = -1;
        for (byte b : bytes) {
            crc ^= b & 0xff;
            for (int bit = 0; bit < 8; bit++) {
                crc = crc >>> 1 ^ ((crc & 1) == 0 ? 0 : 0x82f63b78);
            }
        }
        crc = ~crc;
        return (crc >>> 15 | crc << 17) + 0xa282ead8;
    }
}
