package dev.millrace.cli.correct;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.StreamReadConstraints;
import com.fasterxml.jackson.core.StreamReadFeature;
import com.fasterxml.jackson.core.json.JsonReadFeature;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.runtime.config.NearestKey;
import dev.millrace.schemas.rollout.VectorCheck;
import java.util.Map;
import java.util.Set;

/** Parses the fields of a sequence's line. */
public final class LineFields {
    /** Also parses NaN and infinities, so that they are refused by field. */
    private static final ObjectMapper JSON = JsonMapper.builder(JsonFactory.builder()
                    .enable(StreamReadFeature.STRICT_DUPLICATE_DETECTION)
                    .streamReadConstraints(
                            StreamReadConstraints.builder().maxNestingDepth(16).build())
                    .build())
            .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
            .enable(JsonReadFeature.ALLOW_NON_NUMERIC_NUMBERS)
            .build();

    private LineFields() {}

    /** Refuses unknown fields, so that a misspelt one does not count as absent. */
    public static void requireKnown(JsonNode line, Set<String> known) throws BadLineException {
        for (Map.Entry<String, JsonNode> field : line.properties()) {
            if (!known.contains(field.getKey())) {
                throw new BadLineException("unknown field " + field.getKey()
                        + NearestKey.of(field.getKey(), known)
                                .map(key -> "; did you mean " + key + "?")
                                .orElse("; known: " + String.join(", ", known)));
            }
        }
    }

    public static String id(JsonNode line) throws BadLineException {
        JsonNode id = line.path("id");
        if (!id.isTextual() || id.textValue().isEmpty()) {
            throw new BadLineException("id must be a text: " + id);
        }
        return id.textValue();
    }

    public static ObjectNode parsed(String text) throws BadLineException {
        JsonNode line;
        try {
            line = JSON.readTree(text);
        } catch (JsonProcessingException e) {
            throw new BadLineException("not JSON: " + e.getOriginalMessage());
        }
        if (!(line instanceof ObjectNode object)) {
            throw new BadLineException("a line must be a JSON object");
        }
        return object;
    }

    public static JsonNode list(JsonNode line, String field) throws BadLineException {
        JsonNode list = line.path(field);
        if (list.isMissingNode()) {
            throw new BadLineException(field + " is missing");
        }
        if (!list.isArray()) {
            throw new BadLineException(field + " must be a list");
        }
        return list;
    }

    public static byte[] mask(JsonNode list) throws BadLineException {
        byte[] mask = new byte[list.size()];
        for (int t = 0; t < mask.length; t++) {
            JsonNode value = list.get(t);
            if (!value.isIntegralNumber()
                    || !value.canConvertToLong()
                    || value.longValue() < 0
                    || value.longValue() > 1) {
                throw new BadLineException("mask[" + t + "] must be 0 or 1: " + value);
            }
            mask[t] = (byte) value.intValue();
        }
        return mask;
    }

    /** One per token, ignored where the mask is 0; log-probs are in [{@link VectorCheck#LEAST_LOG_PROB}, 0]. */
    public static float[] numbers(JsonNode list, String field, byte[] mask, boolean areLogProbs)
            throws BadLineException {
        if (list.size() != mask.length) {
            throw new BadLineException(field + " has " + list.size() + " elements, mask has " + mask.length);
        }
        float[] logProbs = new float[mask.length];
        for (int t = 0; t < logProbs.length; t++) {
            JsonNode value = list.get(t);
            if (mask[t] == 0 && value.isNull()) {
                continue;
            }
            if (!value.isNumber()
                    || !Double.isFinite(value.doubleValue())
                    || mask[t] == 1 && !Float.isFinite(value.floatValue())) {
                throw new BadLineException(field + "[" + t + "] must be a finite number"
                        + (mask[t] == 0 ? " or null" : "") + ": " + text(value));
            }
            if (areLogProbs && mask[t] == 1 && value.doubleValue() > 0) {
                throw new BadLineException(field + "[" + t
                        + "] must be at most 0, since it is the natural log of a probability: " + text(value));
            }
            if (areLogProbs && mask[t] == 1 && value.floatValue() < VectorCheck.LEAST_LOG_PROB) {
                throw new BadLineException(field + "[" + t + "] must be at least " + VectorCheck.LEAST_LOG_PROB
                        + ", since less is an engine's stand-in for minus infinity: " + text(value)
                        + "; set mask[" + t + "] to 0, or remove the line");
            }
            logProbs[t] = value.floatValue();
        }
        return logProbs;
    }

    static String text(JsonNode value) {
        return value.isDouble() ? String.valueOf(value.doubleValue()) : value.toString(); // a node quotes NaN
    }
}
