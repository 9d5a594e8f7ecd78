package dev.millrace.policy.tokenizer;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;

/** What the library does not tell of a {@code tokenizer.json}. */
final class TokenizerFile {
    private static final ObjectMapper JSON = new ObjectMapper();

    private TokenizerFile() {}

    /**
     * The highest id that has a token.
     *
     * @param name of the file, for a sentence
     */
    static int highestId(byte[] json, String name) {
        try {
            JsonNode file = JSON.readTree(json);
            int highest = -1;
            for (JsonNode added : file.path("added_tokens")) {
                highest = Math.max(highest, added.path("id").asInt(-1));
            }
            JsonNode vocabulary = file.at("/model/vocab");
            for (JsonNode id : vocabulary) { // a unigram model has a list, in the order of the ids
                highest = Math.max(highest, id.asInt(-1));
            }
            return vocabulary.isArray() ? Math.max(highest, vocabulary.size() - 1) : highest;
        } catch (IOException e) {
            throw new IllegalArgumentException(name + " is not JSON: " + e.getMessage(), e);
        }
    }
}
