package dev.millrace.policy.huggingface;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.policy.decoder.WholeTensor;
import dev.millrace.policy.weights.Bfloat16;
import dev.millrace.policy.weights.TensorSet;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;

/** Writes a file in the safetensors format; {@link SafetensorsFile} says how one looks. */
final class SafetensorsWriter {
    private static final int LENGTH_BYTES = Long.BYTES;
    private static final int BLOCK_BYTES = 1 << 20;
    private static final ObjectMapper JSON = new ObjectMapper();

    private SafetensorsWriter() {}

    /**
     * A tensor to write.
     *
     * @param type   F32, or F16 or BF16, to which values are rounded, ties to even
     * @param values one behind the other, each from position to limit; not changed
     */
    record Tensor(String name, List<Long> dims, String type, List<FloatBuffer> values) {
        /** Returns a whole tensor, joined from the pieces that hold it in the set. */
        static Tensor of(WholeTensor whole, String name, String type, TensorSet from) {
            return new Tensor(
                    name,
                    whole.dims(),
                    type,
                    whole.pieces().stream()
                            .map(piece -> from.tensor(piece.name()))
                            .toList());
        }

        long bytes() {
            return values.stream().mapToLong(FloatBuffer::remaining).sum()
                    * (type.equals("F32") ? Float.BYTES : Short.BYTES);
        }
    }

    /** @throws CheckpointException if a value is larger than the type holds */
    static void write(Path path, List<Tensor> tensors) throws IOException {
        ObjectNode header = JSON.createObjectNode();
        header.putObject("__metadata__").put("format", "pt");
        long offset = 0;
        for (Tensor tensor : tensors) {
            ObjectNode entry = header.putObject(tensor.name()).put("dtype", tensor.type());
            tensor.dims().forEach(entry.putArray("shape")::add);
            entry.putArray("data_offsets").add(offset).add(offset += tensor.bytes());
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
            ByteBuffer block = ByteBuffer.allocate(BLOCK_BYTES).order(ByteOrder.LITTLE_ENDIAN);
            for (Tensor tensor : tensors) {
                for (FloatBuffer part : tensor.values()) {
                    FloatBuffer values = part.duplicate();
                    while (values.hasRemaining()) {
                        fill(block.clear(), values, tensor);
                        writeAll(channel, block.flip());
                    }
                }
            }
            channel.force(true);
        }
    }

    private static void fill(ByteBuffer block, FloatBuffer values, Tensor tensor) {
        while (values.hasRemaining() && block.hasRemaining()) {
            float value = values.get();
            switch (tensor.type()) {
                case "F32" -> block.putFloat(value);
                case "F16" -> block.putShort(inRange(floatToHalf(value), 0x7c00, value, tensor));
                default -> block.putShort(inRange(Bfloat16.of(value), 0x7f80, value, tensor));
            }
        }
    }

    private static short inRange(short bits, int infinity, float value, Tensor tensor) {
        if ((bits & 0x7fff) >= infinity) {
            throw new CheckpointException(tensor.name() + " has " + value + ", which " + tensor.type()
                    + " cannot hold; write the checkpoint as F32");
        }
        return bits;
    }

    /** binary32 to IEEE 754 binary16, ties to even. */
    static short floatToHalf(float value) {
        int bits = Float.floatToIntBits(value);
        int sign = bits >>> 16 & 0x8000;
        int magnitude = bits & 0x7fffffff;
        if (Float.isNaN(value)) {
            return 0x7e00;
        }
        if (magnitude >= 0x477ff000) { // from 65520 on
            return (short) (sign | 0x7c00);
        }
        if (magnitude < 0x38800000) { // below 2^-14 the steps are 2^-24 wide
            return (short) (sign | (int) Math.rint(Math.abs(value) * 0x1p24));
        }
        int rounded = magnitude + 0xfff + (magnitude >>> 13 & 1);
        return (short) (sign | rounded - 0x38000000 >>> 13);
    }

    private static void writeAll(FileChannel channel, ByteBuffer bytes) throws IOException {
        while (bytes.hasRemaining()) {
            channel.write(bytes);
        }
    }
}
