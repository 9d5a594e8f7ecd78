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
import dev.millrace.corrections.ratio.RatioKind;
import dev.millrace.runtime.config.NearestKey;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** What a line of the input must look like; see the package. */
final class LineSchema {
    private static final String SUFFIX = "_log_probs";
    private static final List<String> POLICIES = List.of("behavior", "old", "proximal", "current");

    /** Reads NaN and infinities too, so that they are refused in the place where they stand. */
    private final ObjectMapper json = JsonMapper.builder(JsonFactory.builder()
                    .enable(StreamReadFeature.STRICT_DUPLICATE_DETECTION)
                    .streamReadConstraints(
                            StreamReadConstraints.builder().maxNestingDepth(16).build())
                    .build())
            .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
            .enable(JsonReadFeature.ALLOW_NON_NUMERIC_NUMBERS)
            .build();

    private final Set<String> known = new LinkedHashSet<>(List.of("id", "mask"));
    private final @Nullable RatioKind ratio;

    /** For its parts. */
    LineSchema() {
        this(null);
    }

    /** @param ratio whose two policies every line must have; null for none */
    LineSchema(@Nullable RatioKind ratio) {
        this.ratio = ratio;
        POLICIES.forEach(policy -> known.add(policy + SUFFIX));
    }

    SequenceLine read(int number, String text) throws BadLineException {
        JsonNode line = parsed(text);
        for (Map.Entry<String, JsonNode> field : line.properties()) {
            if (!known.contains(field.getKey())) {
                throw new BadLineException("unknown field " + field.getKey()
                        + NearestKey.of(field.getKey(), known)
                                .map(key -> "; did you mean " + key + "?")
                                .orElse("; known: " + String.join(", ", known)));
            }
        }
        String id = id(line);
        byte[] mask = mask(list(line, "mask"));
        Map<String, float[]> logProbs = new HashMap<>();
        for (String policy : POLICIES) {
            if (line.has(policy + SUFFIX)) {
                logProbs.put(policy, numbers(list(line, policy + SUFFIX), policy + SUFFIX, mask, true));
            }
        }
        RatioKind compared = Objects.requireNonNull(ratio);
        requireVector(logProbs, compared.target(), compared);
        requireVector(logProbs, compared.sampler(), compared);
        return new SequenceLine(number, id, mask, logProbs);
    }

    static String id(JsonNode line) throws BadLineException {
        JsonNode id = line.path("id");
        if (!id.isTextual() || id.textValue().isEmpty()) {
            throw new BadLineException("id must be a text: " + id);
        }
        return id.textValue();
    }

    ObjectNode parsed(String text) throws BadLineException {
        JsonNode line;
        try {
            line = json.readTree(text);
        } catch (JsonProcessingException e) {
            throw new BadLineException("not JSON: " + e.getOriginalMessage());
        }
        if (!(line instanceof ObjectNode object)) {
            throw new BadLineException("a line must be a JSON object");
        }
        return object;
    }

    static JsonNode list(JsonNode line, String field) throws BadLineException {
        JsonNode list = line.path(field);
        if (list.isMissingNode()) {
            throw new BadLineException(field + " is missing");
        }
        if (!list.isArray()) {
            throw new BadLineException(field + " must be a list");
        }
        return list;
    }

    static byte[] mask(JsonNode list) throws BadLineException {
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

    /** One per token, not looked at where the mask is 0; log-probs are at most 0. */
    static float[] numbers(JsonNode list, String field, byte[] mask, boolean areLogProbs) throws BadLineException {
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
            logProbs[t] = value.floatValue();
        }
        return logProbs;
    }

    static String text(JsonNode value) {
        return value.isDouble() ? String.valueOf(value.doubleValue()) : value.toString(); // a node quotes NaN
    }

    private static void requireVector(Map<String, float[]> logProbs, String policy, RatioKind ratio)
            throws BadLineException {
        if (!logProbs.containsKey(policy)) {
            throw new BadLineException(
                    policy + SUFFIX + " is missing; the ratio " + ratio.target() + "/" + ratio.sampler() + " needs it");
        }
    }
}
