package dev.millrace.policy.huggingface;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.core.StreamReadConstraints;
import com.fasterxml.jackson.core.StreamReadFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.LinkedHashMap;
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

    /** @throws CheckpointException if its header is invalid; see {@link SafetensorsHeader} */
    static SafetensorsFile open(Path path) throws IOException {
        if (!Files.isRegularFile(path)) {
            throw new CheckpointException(path + " is not a regular file, so it holds no tensors");
        }
        FileChannel channel = FileChannel.open(path, StandardOpenOption.READ);
        try {
            long headerBytes = read(path, channel, 0, LENGTH_BYTES).getLong(0);
            if (headerBytes < 2 || headerBytes > MAX_HEADER_BYTES) {
                throw new CheckpointException(path + " is not a safetensors file: its header would be " + headerBytes
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

    /** Refuses an existing tensor with another shape or an unreadable type. */
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
        return new CheckpointException(path + " is not a safetensors file: it ends after " + after
                + " bytes, within what its header says is there");
    }

    @Override
    public void close() throws IOException {
        channel.close();
    }

    /**
     * Header of a safetensors file, validated before a tensor is read: every entry has a type, a shape and offsets of
     * the same size, and the offsets cover the file without gaps or overlaps.
     */
    static final class SafetensorsHeader {
        private static final String METADATA = "__metadata__";
        private static final Set<String> FIELDS = Set.of("dtype", "shape", "data_offsets");
        private static final int MOST_TENSORS = 1_000_000;
        private static final int MOST_DIMS = 16;
        private static final Map<String, Integer> BYTES_OF = Map.ofEntries(
                Map.entry("BOOL", 1),
                Map.entry("U8", 1),
                Map.entry("I8", 1),
                Map.entry("F8_E5M2", 1),
                Map.entry("F8_E4M3", 1),
                Map.entry("U16", 2),
                Map.entry("I16", 2),
                Map.entry("F16", 2),
                Map.entry("BF16", 2),
                Map.entry("U32", 4),
                Map.entry("I32", 4),
                Map.entry("F32", 4),
                Map.entry("U64", 8),
                Map.entry("I64", 8),
                Map.entry("F64", 8));
        private static final ObjectMapper JSON = new ObjectMapper(JsonFactory.builder()
                .enable(StreamReadFeature.STRICT_DUPLICATE_DETECTION)
                .streamReadConstraints(StreamReadConstraints.builder()
                        .maxNestingDepth(8)
                        .maxNumberLength(32)
                        .build())
                .build());

        /**
         * One tensor's entry.
         *
         * @param begin first byte, relative to the tensor data
         * @param end behind the last
         */
        record Entry(String type, List<Long> dims, long begin, long end) {}

        private final String file;
        private final Map<String, Entry> entries = new LinkedHashMap<>();

        private SafetensorsHeader(String file) {
            this.file = file;
        }

        /**
         * Reads it.
         *
         * @param dataBytes number of bytes after the header
         * @return entries by name, in the header's order
         * @throws CheckpointException if the file is not what it must be
         */
        static Map<String, Entry> read(String file, byte[] json, long dataBytes) {
            SafetensorsHeader header = new SafetensorsHeader(file);
            try (JsonParser parser = JSON.createParser(json)) {
                header.read(parser);
            } catch (JsonProcessingException e) {
                throw new CheckpointException(
                        file + " is not a safetensors file: its header is not JSON: " + e.getOriginalMessage(), e);
            } catch (IOException e) {
                throw new CheckpointException(
                        file + " is not a safetensors file: its header is not JSON: " + e.getMessage(), e);
            }
            header.requireCovered(dataBytes);
            return header.entries;
        }

        private void read(JsonParser parser) throws IOException {
            if (parser.nextToken() != JsonToken.START_OBJECT) {
                throw new CheckpointException(file + " is not a safetensors file: its header is no JSON object");
            }
            for (String name = parser.nextFieldName(); name != null; name = parser.nextFieldName()) {
                parser.nextToken();
                JsonNode value = JSON.readTree(parser);
                if (name.equals(METADATA)) {
                    requireTexts(value);
                    continue;
                }
                if (entries.size() == MOST_TENSORS) {
                    throw new CheckpointException(file + ": its header names more than " + MOST_TENSORS + " tensors");
                }
                entries.put(name, entry(name, value));
            }
            if (parser.currentToken() != JsonToken.END_OBJECT || parser.nextToken() != null) {
                throw new CheckpointException(file
                        + " is not a safetensors file: its header continues after its JSON object, where only"
                        + " spaces may be");
            }
        }

        private void requireTexts(JsonNode metadata) {
            if (!metadata.isObject()
                    || metadata.properties().stream()
                            .anyMatch(each -> !each.getValue().isTextual())) {
                throw new CheckpointException(file + ": " + METADATA + " must hold texts only: " + shown(metadata));
            }
        }

        private Entry entry(String name, JsonNode value) {
            if (!value.isObject()) {
                throw refused(name, "has no type, shape and place: " + shown(value));
            }
            value.fieldNames().forEachRemaining(field -> {
                if (!FIELDS.contains(field)) {
                    throw refused(name, "has a field that safetensors files do not have: " + field);
                }
            });
            String type = value.path("dtype").textValue();
            Integer width = type == null ? null : BYTES_OF.get(type);
            if (width == null) {
                throw refused(
                        name, "has the type " + shown(value.path("dtype")) + ", which safetensors files do not have");
            }
            JsonNode shape = value.path("shape");
            if (!shape.isArray() || shape.size() > MOST_DIMS) {
                throw refused(
                        name, "must have a list of at most " + MOST_DIMS + " lengths as its shape: " + shown(shape));
            }
            List<Long> dims = new ArrayList<>();
            long bytes = width;
            for (JsonNode dim : shape) {
                dims.add(whole(name, "shape", dim));
                try {
                    bytes = Math.multiplyExact(bytes, dim.longValue());
                } catch (ArithmeticException e) {
                    throw refused(name, "of the shape " + shown(shape) + " would be larger than any file");
                }
            }
            JsonNode place = value.path("data_offsets");
            if (!place.isArray() || place.size() != 2) {
                throw refused(name, "must have a begin and an end as its data_offsets: " + shown(place));
            }
            long begin = whole(name, "data_offsets", place.get(0));
            long end = whole(name, "data_offsets", place.get(1));
            if (end < begin || end - begin != bytes) {
                throw refused(
                        name,
                        "lies at bytes " + begin + " to " + end + ", and needs " + bytes + " for " + type
                                + " of the shape " + dims);
            }
            return new Entry(type, List.copyOf(dims), begin, end);
        }

        private long whole(String name, String field, JsonNode number) {
            if (!number.isIntegralNumber() || !number.canConvertToLong() || number.longValue() < 0) {
                throw refused(
                        name,
                        "must have whole numbers from 0 to " + Long.MAX_VALUE + " in " + field + ": " + shown(number));
            }
            return number.longValue();
        }

        private void requireCovered(long dataBytes) {
            List<Map.Entry<String, Entry>> sorted = new ArrayList<>(entries.entrySet());
            sorted.sort(Comparator.comparingLong(
                            (Map.Entry<String, Entry> each) -> each.getValue().begin())
                    .thenComparingLong(each -> each.getValue().end()));
            long covered = 0;
            String before = "the header";
            for (Map.Entry<String, Entry> each : sorted) {
                Entry entry = each.getValue();
                if (entry.begin() != covered) {
                    throw refused(
                            each.getKey(),
                            "begins at byte " + entry.begin()
                                    + (entry.begin() < covered
                                            ? ", inside of "
                                            : ", with bytes that belong to nothing behind ")
                                    + before + ", which ends at " + covered + "; tensors lie one behind the other");
                }
                covered = entry.end();
                before = each.getKey();
            }
            if (covered != dataBytes) {
                throw new CheckpointException(file + ": its tensors take " + covered
                        + " bytes behind the header, and there are " + dataBytes + "; copy the file again");
            }
        }

        private CheckpointException refused(String name, String why) {
            return new CheckpointException(file + ": " + name + " " + why);
        }

        private static String shown(JsonNode node) {
            String text = node.toString();
            return text.length() <= 80 ? text : text.substring(0, 80) + "...";
        }
    }
}
