package dev.millrace.generator.environment.text;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectReader;
import com.fasterxml.jackson.databind.cfg.JsonNodeFeature;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;

/** The fields of a row other than its prompt, as built-in rewards read them. */
final class RowState {
    /** Keeps a number's spelling, which a double would round. */
    private static final ObjectReader JSON = JsonMapper.builder()
            .enable(DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS)
            .disable(JsonNodeFeature.STRIP_TRAILING_BIGDECIMAL_ZEROES)
            .build()
            .reader();

    private RowState() {}

    /** @throws IllegalArgumentException if it is not a JSON object */
    static ObjectNode parse(String state) {
        try {
            if (JSON.readTree(state) instanceof ObjectNode row) {
                return row;
            }
            throw new IllegalArgumentException("the state must be a JSON object: '" + state + "'");
        } catch (JsonProcessingException e) {
            throw new IllegalArgumentException("the state must be a JSON object: " + e.getOriginalMessage(), e);
        }
    }

    /**
     * The answer, a text or a number or a truth value.
     *
     * @throws IllegalArgumentException if the row has none
     */
    static String answer(String state, String reward) {
        JsonNode answer = parse(state).path("answer");
        if (!answer.isValueNode() || answer.isNull() || answer.asText().isBlank()) {
            throw new IllegalArgumentException("reward " + reward
                    + " compares with the row's \"answer\", which must be a text or a number: "
                    + (answer.isMissingNode() ? "there is none" : answer.toString()));
        }
        return answer.asText().strip();
    }
}
