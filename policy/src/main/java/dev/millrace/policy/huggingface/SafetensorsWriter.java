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

/** Writes a file in the safetensors format; see {@link SafetensorsFile} for the layout. */
final class SafetensorsWriter {
    private static final int LENGTH_BYTES = Long.BYTES;
    private static final int BLOCK_BYTES = 1 << 20;
    private static final ObjectMapper JSON = new ObjectMapper();

    private SafetensorsWriter() {}

    /** Takes the bytes of an entry, a block at a time; the block is reused. */
    @FunctionalInterface
    interface Sink {
        void take(ByteBuffer block) throws IOException;
    }

    sealed interface Entry permits Tensor, Changes {
        String name();

        List<Long> dims();

        String type();

        long bytes();

        /** Passes on all of its bytes, in order. */
        void each(Sink sink) throws IOException;
    }

    /**
     * A tensor to write.
     *
     * @param type   F32, or F16 or BF16, to which values are rounded, ties to even
     * @param values concatenated, each from position to limit; not changed
     */
    record Tensor(String name, List<Long> dims, String type, List<FloatBuffer> values) implements Entry {
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

        long elements() {
            return values.stream().mapToLong(FloatBuffer::remaining).sum();
        }

        int width() {
            return type.equals("F32") ? Float.BYTES : Short.BYTES;
        }

        @Override
        public long bytes() {
            return elements() * width();
        }

        @Override
        public void each(Sink sink) throws IOException {
            ToBits bits = toBits();
            int width = width();
            ByteBuffer block = block();
            for (FloatBuffer part : values) {
                FloatBuffer left = part.duplicate();
                while (left.hasRemaining()) {
                    while (left.hasRemaining() && block.hasRemaining()) {
                        put(block, bits.of(left.get()), width);
                    }
                    sink.take(block.flip());
                    block.clear();
                }
            }
        }

        /** @throws CheckpointException from the function, if a value exceeds the type's range */
        private ToBits toBits() {
            return switch (type) {
                case "F32" -> Float::floatToRawIntBits;
                case "F16" -> value -> inRange(floatToHalf(value), 0x7c00, value);
                default -> value -> inRange(Bfloat16.of(value), 0x7f80, value);
            };
        }

        private int inRange(short bits, int infinity, float value) {
            if ((bits & 0x7fff) >= infinity) {
                throw new CheckpointException(
                        name + " has " + value + ", which " + type + " cannot hold; write the checkpoint as F32");
            }
            return bits;
        }
    }

    @FunctionalInterface
    private interface ToBits {
        int of(float value);
    }

    /**
     * The elements that differ from an earlier tensor, in ascending order: their indices in the flattened tensor as
     * {@code NAME.indices}, or their new bits as {@code NAME.values}.
     *
     * @param before of the same name, dims and type, in pieces of the same lengths
     * @param count  as {@link #count} gives it
     */
    record Changes(Tensor before, Tensor now, long count, boolean places) implements Entry {
        /** Number of elements whose bits differ. */
        static long count(Tensor before, Tensor now) throws IOException {
            long[] count = {0};
            scan(before, now, (place, bits) -> count[0]++);
            return count[0];
        }

        /** Bytes of indices and values together. */
        static long bytes(Tensor now, long count) {
            return count * ((isLong(now) ? Long.BYTES : Integer.BYTES) + now.width());
        }

        private static boolean isLong(Tensor tensor) {
            return tensor.elements() > Integer.MAX_VALUE;
        }

        @Override
        public String name() {
            return now.name() + (places ? ".indices" : ".values");
        }

        @Override
        public List<Long> dims() {
            return List.of(count);
        }

        @Override
        public String type() {
            return !places ? now.type() : isLong(now) ? "I64" : "I32";
        }

        @Override
        public long bytes() {
            return count * (!places ? now.width() : isLong(now) ? Long.BYTES : Integer.BYTES);
        }

        @Override
        public void each(Sink sink) throws IOException {
            ByteBuffer block = block();
            boolean isLong = isLong(now);
            int width = now.width();
            scan(before, now, (place, bits) -> {
                if (!places) {
                    put(block, bits, width);
                } else if (isLong) {
                    block.putLong(place);
                } else {
                    block.putInt((int) place);
                }
                if (!block.hasRemaining()) {
                    sink.take(block.flip());
                    block.clear();
                }
            });
            sink.take(block.flip());
        }

        @FunctionalInterface
        private interface Change {
            void at(long place, int bits) throws IOException;
        }

        private static void scan(Tensor before, Tensor now, Change change) throws IOException {
            ToBits old = before.toBits();
            ToBits bits = now.toBits();
            long place = 0;
            for (int part = 0; part < now.values().size(); part++) {
                FloatBuffer from = before.values().get(part).duplicate();
                FloatBuffer to = now.values().get(part).duplicate();
                for (; to.hasRemaining(); place++) {
                    float was = from.get();
                    float is = to.get();
                    if (Float.floatToRawIntBits(was) != Float.floatToRawIntBits(is)) {
                        int next = bits.of(is);
                        if (old.of(was) != next) { // rounding may make them the same
                            change.at(place, next);
                        }
                    }
                }
            }
        }
    }

    /** @throws CheckpointException if a value exceeds the type's range */
    static void write(Path path, List<? extends Entry> entries) throws IOException {
        ObjectNode header = JSON.createObjectNode();
        header.putObject("__metadata__").put("format", "pt");
        long offset = 0;
        for (Entry entry : entries) {
            ObjectNode described = header.putObject(entry.name()).put("dtype", entry.type());
            entry.dims().forEach(described.putArray("shape")::add);
            described.putArray("data_offsets").add(offset).add(offset += entry.bytes());
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
            for (Entry entry : entries) {
                entry.each(block -> writeAll(channel, block));
            }
            channel.force(true);
        }
    }

    private static ByteBuffer block() {
        return ByteBuffer.allocate(BLOCK_BYTES).order(ByteOrder.LITTLE_ENDIAN);
    }

    private static void put(ByteBuffer block, int bits, int width) {
        if (width == Float.BYTES) {
            block.putInt(bits);
        } else {
            block.putShort((short) bits);
        }
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
