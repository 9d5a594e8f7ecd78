package dev.millrace.generator.environment.text;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;

/** What a row says beside its prompt, as built-in rewards read it. */
final class RowState {
    private static final ObjectMapper JSON = new ObjectMapper();

    private RowState() {}

    /** @throws IllegalArgumentException if it is no JSON object */
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
