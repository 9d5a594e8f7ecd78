package dev.millrace.generator.environment.remote;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.StreamReadFeature;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Reads answers strictly: what is missing, mistyped, not finite, twice there or unknown is refused with a sentence. */
final class PartnerJson {
    private static final int SHOWN = 120;
    private static final ObjectMapper JSON = JsonMapper.builder()
            .enable(StreamReadFeature.STRICT_DUPLICATE_DETECTION)
            .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
            .build();

    private PartnerJson() {}

    static ObjectNode object() {
        return JSON.createObjectNode();
    }

    static byte[] bytes(ObjectNode question) {
        try {
            return JSON.writeValueAsBytes(question);
        } catch (JsonProcessingException e) {
            throw new IllegalStateException(e);
        }
    }

    /** Any JSON; null if it is none. */
    static ObjectNode metadata(String state) {
        try {
            if (JSON.readTree(state) instanceof ObjectNode row) {
                return row;
            }
        } catch (JsonProcessingException e) {
            // in a notation of its environment's own
        }
        return object().put("state", state);
    }

    /** @throws PartnerException if it is not a JSON object, or says what went wrong */
    static ObjectNode parsed(byte[] answer, String who) {
        JsonNode read;
        try {
            read = JSON.readTree(answer);
        } catch (IOException e) {
            String why = e instanceof JsonProcessingException json ? json.getOriginalMessage() : e.getMessage();
            throw new PartnerException(who + " answered with invalid JSON: " + why + ": " + shown(answer), e);
        }
        if (!(read instanceof ObjectNode object)) {
            throw new PartnerException(who + " must answer with a JSON object: " + shown(answer));
        }
        JsonNode error = object.path("error");
        if (!error.isMissingNode() && !error.isNull()) {
            throw new PartnerException(
                    who + " says: " + clipped(error.isTextual() ? error.asText() : error.toString()));
        }
        return object;
    }

    static String shown(byte[] answer) {
        return clipped(new String(answer, 0, Math.min(answer.length, 4 * SHOWN), StandardCharsets.UTF_8));
    }

    private static String clipped(String text) {
        String line = text.strip().replaceAll("\\s+", " ");
        return line.length() <= SHOWN ? line : line.substring(0, SHOWN) + "...";
    }

    static void requireKnown(ObjectNode answer, Set<String> known, String who) {
        for (Iterator<String> names = answer.fieldNames(); names.hasNext(); ) {
            String name = names.next();
            if (!known.contains(name)) {
                throw new PartnerException(who + " answered with an unknown field " + clipped(name) + "; known are "
                        + String.join(", ", known.stream().sorted().toList()));
            }
        }
    }

    static double number(JsonNode value, String name, String who) {
        if (!value.isNumber() || !Double.isFinite(value.doubleValue())) {
            throw new PartnerException(who + " answered without a finite number as " + name + ": "
                    + (value.isMissingNode() ? "there is none" : clipped(value.toString())));
        }
        return value.doubleValue();
    }

    /** Numbers by name; none where the field is not there. */
    static Map<String, Double> numbersByName(JsonNode value, String name, String who) {
        Map<String, Double> numbers = new LinkedHashMap<>();
        if (!isThere(value)) {
            return numbers;
        }
        if (!value.isObject()) {
            throw new PartnerException(
                    who + " answered without numbers by name as " + name + ": " + clipped(value.toString()));
        }
        value.properties()
                .forEach(each -> numbers.put(each.getKey(), number(each.getValue(), name + "." + each.getKey(), who)));
        return numbers;
    }

    /** Numbers in order; none where the field is not there. */
    static List<Double> numbers(JsonNode value, String name, String who) {
        List<Double> numbers = new ArrayList<>();
        if (!isThere(value)) {
            return numbers;
        }
        if (!value.isArray()) {
            throw new PartnerException(
                    who + " answered without a list of numbers as " + name + ": " + clipped(value.toString()));
        }
        value.forEach(each -> numbers.add(number(each, name + "[" + numbers.size() + "]", who)));
        return numbers;
    }

    static boolean isThere(JsonNode value) {
        return !value.isMissingNode() && !value.isNull();
    }
}
