package dev.millrace.policy.huggingface;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.policy.decoder.TensorSpec;
import dev.millrace.policy.weights.TensorSet;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
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
    private static final String METADATA = "__metadata__";
    private static final ObjectMapper JSON = new ObjectMapper();

    private final Path path;
    private final FileChannel channel;
    private final JsonNode header;
    private final long dataStart;

    private SafetensorsFile(Path path, FileChannel channel, JsonNode header, long dataStart) {
        this.path = path;
        this.channel = channel;
        this.header = header;
        this.dataStart = dataStart;
    }

    static SafetensorsFile open(Path path) throws IOException {
        FileChannel channel = FileChannel.open(path, StandardOpenOption.READ);
        try {
            ByteBuffer length = read(path, channel, 0, LENGTH_BYTES);
            long headerBytes = length.getLong(0);
            if (headerBytes < 2 || headerBytes > MAX_HEADER_BYTES) {
                throw new CheckpointException(path + " is no safetensors file: its header would be " + headerBytes
                        + " bytes long, more than " + MAX_HEADER_BYTES + " or less than 2");
            }
            String header = new String(
                    read(path, channel, LENGTH_BYTES, (int) headerBytes).array(), StandardCharsets.UTF_8);
            return new SafetensorsFile(path, channel, JSON.readTree(header), LENGTH_BYTES + headerBytes);
        } catch (JsonProcessingException e) {
            channel.close();
            throw new CheckpointException(
                    path + " is no safetensors file: its header is not JSON: " + e.getOriginalMessage(), e);
        } catch (IOException | RuntimeException e) {
            channel.close();
            throw e;
        }
    }

    Set<String> names() {
        Set<String> names = new TreeSet<>();
        header.fieldNames().forEachRemaining(names::add);
        names.remove(METADATA);
        return names;
    }

    /** Reads one tensor as float32, whatever its float type in the file. */
    void read(TensorSpec spec, FloatBuffer into) throws IOException {
        JsonNode entry = header.get(spec.name());
        List<Long> dims = new ArrayList<>();
        entry.path("shape").forEach(dim -> dims.add(dim.asLong()));
        if (!dims.equals(spec.dims())) {
            throw new CheckpointException(
                    path + ": " + spec.name() + " has the shape " + dims + ", the config asks for " + spec.dims());
        }
        String type = entry.path("dtype").asText();
        int width = switch (type) {
            case "F32" -> Float.BYTES;
            case "F16", "BF16" -> Short.BYTES;
            default ->
                throw new CheckpointException(
                        path + ": " + spec.name() + " has the type " + type + ", supported are F32, F16 and BF16");
        };
        long begin = entry.path("data_offsets").path(0).asLong(-1);
        long end = entry.path("data_offsets").path(1).asLong(-1);
        if (begin < 0 || end - begin != (long) spec.elementCount() * width || dataStart + end > channel.size()) {
            throw new CheckpointException(path + ": " + spec.name() + " lies at bytes " + begin + " to " + end + " of "
                    + (channel.size() - dataStart) + ", and needs " + (long) spec.elementCount() * width);
        }
        ByteBuffer bytes = channel.map(FileChannel.MapMode.READ_ONLY, dataStart + begin, end - begin)
                .order(ByteOrder.LITTLE_ENDIAN);
        switch (type) {
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

    /** Writes a whole set as float32. */
    static void write(Path path, TensorSet tensors) throws IOException {
        ObjectNode header = JSON.createObjectNode();
        header.putObject(METADATA).put("format", "pt");
        long offset = 0;
        for (TensorSpec spec : tensors.specs()) {
            ObjectNode entry = header.putObject(spec.name()).put("dtype", "F32");
            spec.dims().forEach(entry.putArray("shape")::add);
            entry.putArray("data_offsets").add(offset).add(offset += (long) spec.elementCount() * Float.BYTES);
        }
        byte[] json = JSON.writeValueAsBytes(header);
        int padded = (json.length + LENGTH_BYTES - 1) / LENGTH_BYTES * LENGTH_BYTES; // tensors begin on a multiple of 8
        ByteBuffer front = ByteBuffer.allocate(LENGTH_BYTES + padded)
                .order(ByteOrder.LITTLE_ENDIAN)
                .putLong(padded)
                .put(json);
        while (front.hasRemaining()) {
            front.put((byte) ' ');
        }
        try (FileChannel channel = FileChannel.open(
                path, StandardOpenOption.CREATE, StandardOpenOption.TRUNCATE_EXISTING, StandardOpenOption.WRITE)) {
            writeAll(channel, front.flip());
            for (TensorSpec spec : tensors.specs()) {
                writeAll(channel, tensors.bytes(spec.name()));
            }
            channel.force(true);
        }
    }

    private static void writeAll(FileChannel channel, ByteBuffer bytes) throws IOException {
        while (bytes.hasRemaining()) {
            channel.write(bytes);
        }
    }

    private static ByteBuffer read(Path path, FileChannel channel, long from, int count) throws IOException {
        ByteBuffer bytes = ByteBuffer.allocate(count).order(ByteOrder.LITTLE_ENDIAN);
        while (bytes.hasRemaining()) {
            if (channel.read(bytes, from + bytes.position()) < 0) {
                throw new CheckpointException(path + " is no safetensors file: it ends after "
                        + (from + bytes.position()) + " bytes, within its header");
            }
        }
        return bytes;
    }

    @Override
    public void close() throws IOException {
        channel.close();
    }
}
