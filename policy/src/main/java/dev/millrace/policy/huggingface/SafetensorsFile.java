package dev.millrace.policy.huggingface;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;

/**
 * One file in the safetensors format, open for reading.
 *
 * <pre>
 * 8 bytes  length n of the header, little-endian
 * n bytes  JSON: {"name": {"dtype": "F32", "shape": [..], "data_offsets": [begin, end]}, "__metadata__": {..}}
 * the rest the tensors, row-major and little-endian, at their offsets from here
 * </pre>
 */
final class SafetensorsFile implements AutoCloseable {
    private static final int LENGTH_BYTES = Long.BYTES;
    private static final long MAX_HEADER_BYTES = 100_000_000;
    private static final int BLOCK_BYTES = 1 << 20;

    private final Path path;
    private final FileChannel channel;
    private final Map<String, SafetensorsHeader.Entry> entries;
    private final long dataStart;

    private SafetensorsFile(
            Path path, FileChannel channel, Map<String, SafetensorsHeader.Entry> entries, long dataStart) {
        this.path = path;
        this.channel = channel;
        this.entries = entries;
        this.dataStart = dataStart;
    }

    /** @throws CheckpointException if its header is not what it must be; see {@link SafetensorsHeader} */
    static SafetensorsFile open(Path path) throws IOException {
        if (!Files.isRegularFile(path)) {
            throw new CheckpointException(path + " is no regular file, so it holds no tensors");
        }
        FileChannel channel = FileChannel.open(path, StandardOpenOption.READ);
        try {
            long headerBytes = read(path, channel, 0, LENGTH_BYTES).getLong(0);
            if (headerBytes < 2 || headerBytes > MAX_HEADER_BYTES) {
                throw new CheckpointException(path + " is no safetensors file: its header would be " + headerBytes
                        + " bytes long, more than " + MAX_HEADER_BYTES + " or less than 2");
            }
            long dataBytes = channel.size() - LENGTH_BYTES - headerBytes;
            if (dataBytes < 0) {
                throw ended(path, channel.size());
            }
            return new SafetensorsFile(
                    path,
                    channel,
                    SafetensorsHeader.read(
                            path.toString(),
                            read(path, channel, LENGTH_BYTES, (int) headerBytes).array(),
                            dataBytes),
                    LENGTH_BYTES + headerBytes);
        } catch (IOException | RuntimeException e) {
            channel.close();
            throw e;
        }
    }

    /** In the header's order. */
    Map<String, SafetensorsHeader.Entry> entries() {
        return Collections.unmodifiableMap(entries);
    }

    Set<String> names() {
        return new TreeSet<>(entries.keySet());
    }

    /** Refuses a tensor that is there and cannot be read as this one. */
    void require(String name, List<Long> dims) {
        SafetensorsHeader.Entry entry = entry(name);
        if (!entry.dims().equals(dims)) {
            throw new CheckpointException(
                    path + ": " + name + " has the shape " + entry.dims() + ", the config asks for " + dims);
        }
        if (!entry.type().equals("F32")
                && !entry.type().equals("F16")
                && !entry.type().equals("BF16")) {
            throw new CheckpointException(
                    path + ": " + name + " has the type " + entry.type() + ", supported are F32, F16 and BF16");
        }
    }

    private SafetensorsHeader.Entry entry(String name) {
        return Objects.requireNonNull(entries.get(name), name);
    }

    /**
     * Reads some of a tensor's elements as float32, converting from any float type in the file.
     *
     * @param name of a tensor that passed {@link #require}
     * @param first index of the first element, in file order
     * @throws CheckpointException if a number is not finite
     */
    void read(String name, long first, int count, FloatBuffer into) throws IOException {
        SafetensorsHeader.Entry entry = entry(name);
        int width = entry.type().equals("F32") ? Float.BYTES : Short.BYTES;
        long begin = entry.begin() + first * width;
        long end = begin + (long) count * width;
        int from = into.position();
        for (long at = begin; at < end; at += BLOCK_BYTES) {
            ByteBuffer bytes = read(path, channel, dataStart + at, (int) Math.min(BLOCK_BYTES, end - at));
            switch (entry.type()) {
                case "F32" -> into.put(bytes.asFloatBuffer());
                case "F16" -> {
                    while (bytes.hasRemaining()) {
                        into.put(halfToFloat(bytes.getShort()));
                    }
                }
                default -> {
                    while (bytes.hasRemaining()) {
                        into.put(Float.intBitsToFloat(
                                bytes.getShort() << Short.SIZE)); // bfloat16 is the upper half of a float
                    }
                }
            }
        }
        for (int i = from; i < into.position(); i++) {
            if (!Float.isFinite(into.get(i))) {
                throw new CheckpointException(
                        path + ": " + name + " has " + into.get(i) + " as element "
                                + (first + i - from) + " of " + (entry.end() - entry.begin()) / width
                                + ", and a policy with such a weight samples nothing; give a checkpoint from before it diverged");
            }
        }
    }

    /** IEEE 754 binary16 to binary32, exactly. */
    static float halfToFloat(short half) {
        int exponent = half >> 10 & 0x1f;
        int fraction = half & 0x3ff;
        int sign = (half & 0x8000) << 16;
        if (exponent == 0) {
            float magnitude = fraction * 0x1p-24f;
            return sign == 0 ? magnitude : -magnitude;
        }
        int wide = exponent == 0x1f ? 0xff : exponent - 15 + 127;
        return Float.intBitsToFloat(sign | wide << 23 | fraction << 13);
    }

    private static ByteBuffer read(Path path, FileChannel channel, long from, int count) throws IOException {
        ByteBuffer bytes = ByteBuffer.allocate(count).order(ByteOrder.LITTLE_ENDIAN);
        while (bytes.hasRemaining()) {
            if (channel.read(bytes, from + bytes.position()) < 0) {
                throw ended(path, from + bytes.position());
            }
        }
        return bytes.flip();
    }

    private static CheckpointException ended(Path path, long after) {
        return new CheckpointException(path + " is no safetensors file: it ends after " + after
                + " bytes, within what its header says is there");
    }

    @Override
    public void close() throws IOException {
        channel.close();
    }
}
