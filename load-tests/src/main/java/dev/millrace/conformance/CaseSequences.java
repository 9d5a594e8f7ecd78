package dev.millrace.conformance;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.IntNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import java.util.HashMap;
import java.util.Map;
import java.util.function.IntFunction;
import java.util.stream.IntStream;

/** Ragged sequences packed end to end; all per-token fields of a sequence have one length. */
public final class CaseSequences {
    private final JsonNode sequences;
    private final int[] offsets;

    private CaseSequences(JsonNode sequences, int[] offsets) {
        this.sequences = sequences;
        this.offsets = offsets;
    }

    static CaseSequences of(JsonNode sequences) {
        if (!sequences.isArray()) {
            throw new MalformedCaseException("input.sequences must be a list: " + sequences.getNodeType());
        }
        int[] offsets = new int[sequences.size() + 1];
        for (int s = 0; s < sequences.size(); s++) {
            offsets[s + 1] = offsets[s] + lengthOf(sequences.get(s), s);
        }
        return new CaseSequences(sequences, offsets);
    }

    private static int lengthOf(JsonNode sequence, int s) {
        int length = -1;
        String first = "";
        for (Map.Entry<String, JsonNode> field : sequence.properties()) {
            if (!field.getValue().isArray()) {
                continue;
            }
            int here = field.getValue().size();
            if (length >= 0 && here != length) {
                throw new IllegalArgumentException("sequence " + s + ": " + field.getKey() + " has " + here
                        + " tokens, " + first + " has " + length);
            }
            length = here;
            first = field.getKey();
        }
        return Math.max(length, 0);
    }

    public int count() {
        return sequences.size();
    }

    public int tokenCount() {
        return offsets[offsets.length - 1];
    }

    /** A new array of {@code count() + 1} packed positions; sequence s covers {@code [offsets[s], offsets[s + 1])}. */
    public int[] offsets() {
        return offsets.clone();
    }

    public double[] doubles(String field) {
        double[] packed = new double[tokenCount()];
        for (int s = 0; s < count(); s++) {
            JsonNode values = field(s, field);
            for (int t = 0; t < values.size(); t++) {
                packed[offsets[s] + t] = JsonNumbers.read(values.get(t), "sequence " + s + " " + field + "[" + t + "]");
            }
        }
        return packed;
    }

    /** Golden inputs are float32 values, so the cast is exact. */
    public float[] floats(String field) {
        double[] doubles = doubles(field);
        float[] packed = new float[doubles.length];
        for (int i = 0; i < packed.length; i++) {
            packed[i] = (float) doubles[i];
        }
        return packed;
    }

    public int[] integers(String field) {
        double[] doubles = doubles(field);
        int[] packed = new int[doubles.length];
        for (int i = 0; i < packed.length; i++) {
            packed[i] = (int) doubles[i];
            if (packed[i] != doubles[i]) {
                throw new IllegalArgumentException(
                        field + " must be integers, packed position " + i + ": " + doubles[i]);
            }
        }
        return packed;
    }

    /** 1 trained, 0 context. */
    public byte[] mask() {
        int[] values = integers("mask");
        byte[] mask = new byte[values.length];
        for (int i = 0; i < mask.length; i++) {
            if (values[i] != 0 && values[i] != 1) {
                throw new IllegalArgumentException("mask must be 0 or 1, packed position " + i + ": " + values[i]);
            }
            mask[i] = (byte) values[i];
        }
        return mask;
    }

    public double[] perSequence(String field) {
        double[] values = new double[count()];
        for (int s = 0; s < values.length; s++) {
            values[s] = JsonNumbers.read(sequences.get(s).path(field), "sequence " + s + " " + field);
        }
        return values;
    }

    public double[] perSequence(String field, String member) {
        double[] values = new double[count()];
        for (int s = 0; s < values.length; s++) {
            String where = "sequence " + s + " " + field + "." + member;
            values[s] = JsonNumbers.read(sequences.get(s).path(field).path(member), where);
        }
        return values;
    }

    public String[] texts(String field) {
        String[] texts = new String[count()];
        for (int s = 0; s < texts.length; s++) {
            JsonNode text = sequences.get(s).path(field);
            if (!text.isTextual()) {
                throw new MalformedCaseException("sequence " + s + " needs the text " + field + ": " + text);
            }
            texts[s] = text.textValue();
        }
        return texts;
    }

    /** Groups numbered by first appearance of {@code group_id}. */
    public int[] groups() {
        Map<String, Integer> numbers = new HashMap<>();
        String[] ids = texts("group_id");
        int[] groups = new int[ids.length];
        for (int s = 0; s < ids.length; s++) {
            groups[s] = numbers.computeIfAbsent(ids[s], id -> numbers.size());
        }
        return groups;
    }

    public ArrayNode ragged(double[] packed) {
        return ragged(t -> JsonNumbers.write(packed[t]));
    }

    public ArrayNode ragged(float[] packed) {
        return ragged(t -> JsonNumbers.write(packed[t]));
    }

    public ArrayNode ragged(byte[] packedMask) {
        return ragged(t -> IntNode.valueOf(packedMask[t]));
    }

    private ArrayNode ragged(IntFunction<JsonNode> atPosition) {
        ArrayNode lists = JsonNodeFactory.instance.arrayNode();
        for (int s = 0; s < count(); s++) {
            ArrayNode list = lists.addArray();
            IntStream.range(offsets[s], offsets[s + 1]).mapToObj(atPosition).forEach(list::add);
        }
        return lists;
    }

    private JsonNode field(int s, String field) {
        JsonNode values = sequences.get(s).path(field);
        if (!values.isArray()) {
            throw new MalformedCaseException("sequence " + s + " needs the list " + field + ": " + values);
        }
        return values;
    }
}
