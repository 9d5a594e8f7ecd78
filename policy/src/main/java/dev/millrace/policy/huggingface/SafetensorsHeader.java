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
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * What a safetensors file says of itself, checked whole before a tensor is read: every entry has a type, a shape and a place, what they
 * say of its size agrees, and the places cover the file without a gap and without touching each other.
 */
final class SafetensorsHeader {
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
     * @param begin first byte, counted from where the tensors begin
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
     * @param file what to call the file in a refusal
     * @param dataBytes how many bytes the file has behind the header
     * @return entries by name, in the header's order
     * @throws CheckpointException if the file is not what it must be
     */
    static Map<String, Entry> read(String file, byte[] json, long dataBytes) {
        SafetensorsHeader header = new SafetensorsHeader(file);
        try (JsonParser parser = JSON.createParser(json)) {
            header.read(parser);
        } catch (JsonProcessingException e) {
            throw new CheckpointException(
                    file + " is no safetensors file: its header is not JSON: " + e.getOriginalMessage(), e);
        } catch (IOException e) {
            throw new CheckpointException(
                    file + " is no safetensors file: its header is not JSON: " + e.getMessage(), e);
        }
        header.requireCovered(dataBytes);
        return header.entries;
    }

    private void read(JsonParser parser) throws IOException {
        if (parser.nextToken() != JsonToken.START_OBJECT) {
            throw new CheckpointException(file + " is no safetensors file: its header is no JSON object");
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
                    + " is no safetensors file: its header goes on behind its JSON object, where only spaces may be");
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
            throw refused(name, "has the type " + shown(value.path("dtype")) + ", which safetensors files do not have");
        }
        JsonNode shape = value.path("shape");
        if (!shape.isArray() || shape.size() > MOST_DIMS) {
            throw refused(name, "must have a list of at most " + MOST_DIMS + " lengths as its shape: " + shown(shape));
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
                    "lies at bytes " + begin + " to " + end + ", and needs " + bytes + " for " + type + " of the shape "
                            + dims);
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

    /** Enough of it to find it. */
    private static String shown(JsonNode node) {
        String text = node.toString();
        return text.length() <= 80 ? text : text.substring(0, 80) + "...";
    }
}
