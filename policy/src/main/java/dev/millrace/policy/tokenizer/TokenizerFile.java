package dev.millrace.policy.tokenizer;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.util.Iterator;

/**
 * What the library does not tell of a {@code tokenizer.json}.
 *
 * @param highestId that has a token
 * @param longestToken in the characters of the vocabulary, of which each stands for a byte or more
 */
record TokenizerFile(int highestId, int longestToken) {
    private static final ObjectMapper JSON = new ObjectMapper();

    /** @param name of the file, for a sentence */
    static TokenizerFile read(byte[] json, String name) {
        try {
            JsonNode file = JSON.readTree(json);
            int highest = -1;
            int longest = 1;
            for (JsonNode added : file.path("added_tokens")) {
                highest = Math.max(highest, added.path("id").asInt(-1));
                longest = Math.max(longest, added.path("content").asText().length());
            }
            JsonNode vocabulary = file.at("/model/vocab");
            for (JsonNode id : vocabulary) { // a unigram model has a list of token and score, in the order of the ids
                highest = Math.max(highest, id.asInt(-1));
                longest = Math.max(longest, id.path(0).asText().length());
            }
            for (Iterator<String> token = vocabulary.fieldNames(); token.hasNext(); ) {
                longest = Math.max(longest, token.next().length());
            }
            return new TokenizerFile(
                    vocabulary.isArray() ? Math.max(highest, vocabulary.size() - 1) : highest, longest);
        } catch (IOException e) {
            throw new IllegalArgumentException(name + " is not JSON: " + e.getMessage(), e);
        }
    }
}
