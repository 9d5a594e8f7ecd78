package dev.millrace.corrections.golden;

import com.fasterxml.jackson.databind.JsonNode;
import dev.millrace.corrections.TokenBatch;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** One golden case: configuration, ragged input, and what the reference put out in float32 and in float64. */
public record GoldenCase(JsonNode json) {

    public String name() {
        return json.path("name").asText();
    }

    public JsonNode config() {
        return json.path("config");
    }

    public JsonNode input() {
        return json.path("input");
    }

    public JsonNode expected() {
        return json.path("expected");
    }

    /** Whether the reference refused this input. */
    public boolean expectsError() {
        return expected().has("error");
    }

    public int paddedLength() {
        return input().path("padded_length").asInt();
    }

    public List<JsonNode> sequences() {
        List<JsonNode> sequences = new ArrayList<>();
        input().path("sequences").forEach(sequences::add);
        return sequences;
    }

    /** The layout of the input, with {@code group_id} as groups numbered in order of appearance. */
    public TokenBatch batch() {
        List<JsonNode> sequences = sequences();
        int[] offsets = offsetsOf("mask");
        byte[] mask = new byte[offsets[sequences.size()]];
        for (int s = 0; s < sequences.size(); s++) {
            JsonNode values = sequences.get(s).path("mask");
            for (int t = 0; t < values.size(); t++) {
                mask[offsets[s] + t] = (byte) values.get(t).asInt();
            }
        }
        return new TokenBatch(offsets, mask, groups());
    }

    /** The layout of inputs without a mask: lengths from {@code field}, every token trained. */
    public TokenBatch batchShapedLike(String field) {
        int[] offsets = offsetsOf(field);
        byte[] mask = new byte[offsets[offsets.length - 1]];
        Arrays.fill(mask, (byte) 1);
        return new TokenBatch(offsets, mask, groups());
    }

    private int[] offsetsOf(String field) {
        List<JsonNode> sequences = sequences();
        int[] offsets = new int[sequences.size() + 1];
        for (int s = 0; s < sequences.size(); s++) {
            offsets[s + 1] = offsets[s] + required(sequences.get(s), field).size();
        }
        return offsets;
    }

    private int[] groups() {
        List<JsonNode> sequences = sequences();
        Map<String, Integer> numbers = new HashMap<>();
        int[] groups = new int[sequences.size()];
        for (int s = 0; s < groups.length; s++) {
            String id = sequences.get(s).path("group_id").asText();
            groups[s] = numbers.computeIfAbsent(id, unseen -> numbers.size());
        }
        return groups;
    }

    /** A per-token field of every sequence, packed. */
    public double[] tokenDoubles(String field) {
        List<Double> packed = new ArrayList<>();
        for (JsonNode sequence : sequences()) {
            required(sequence, field).forEach(v -> packed.add(number(v)));
        }
        return packed.stream().mapToDouble(Double::doubleValue).toArray();
    }

    /** A per-token field of every sequence, packed; golden inputs are float32 values, so nothing is lost. */
    public float[] tokens(String field) {
        double[] doubles = tokenDoubles(field);
        float[] floats = new float[doubles.length];
        for (int t = 0; t < floats.length; t++) {
            floats[t] = (float) doubles[t];
        }
        return floats;
    }

    /** A field with one number per sequence. */
    public double[] perSequence(String field) {
        return sequences().stream().mapToDouble(s -> number(required(s, field))).toArray();
    }

    private JsonNode required(JsonNode sequence, String field) {
        JsonNode value = sequence.get(field);
        if (value == null) {
            throw new IllegalStateException(name() + " has no sequence field " + field);
        }
        return value;
    }

    /** A JSON number, or one of the strings NaN, Infinity, -Infinity. */
    public static double number(JsonNode node) {
        if (node.isNumber()) {
            return node.doubleValue();
        }
        if (node.isTextual()) {
            return Double.parseDouble(node.textValue());
        }
        throw new IllegalStateException("not a number: " + node);
    }

    @Override
    public String toString() {
        return name();
    }
}
