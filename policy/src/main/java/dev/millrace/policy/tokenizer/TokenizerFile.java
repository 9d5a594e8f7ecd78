package dev.millrace.policy.tokenizer;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.util.Iterator;
import java.util.Set;

/**
 * What the library does not tell of a {@code tokenizer.json}.
 *
 * @param highestId that has a token
 * @param longestToken in UTF-16 characters; 0 where a token may stand for more of a text than its own characters, as where unknown ones are put
 *     together or left out
 */
record TokenizerFile(int highestId, int longestToken) {
    /** Those that leave a text as long as it was, or shorter by letters and their marks that are put together. */
    private static final Set<String> KEEPING = Set.of("Prepend", "Replace", "NFC", "Lowercase");

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
                    vocabulary.isArray() ? Math.max(highest, vocabulary.size() - 1) : highest,
                    coversAll(file) && isKeeping(file.path("normalizer")) ? longest : 0);
        } catch (IOException e) {
            throw new IllegalArgumentException(name + " is not JSON: " + e.getMessage(), e);
        }
    }

    /** Whether each byte of a text is in a token, and no token takes the white space beside it. */
    private static boolean coversAll(JsonNode file) {
        for (JsonNode added : file.path("added_tokens")) {
            if (added.path("lstrip").asBoolean() || added.path("rstrip").asBoolean()) {
                return false;
            }
        }
        return file.at("/model/byte_fallback").asBoolean()
                || file.path("pre_tokenizer").findValuesAsText("type").contains("ByteLevel");
    }

    private static boolean isKeeping(JsonNode normalizer) {
        boolean isKeeping = !normalizer.has("type")
                || KEEPING.contains(normalizer.path("type").asText())
                        && !normalizer.path("pattern").has("Regex")
                        && normalizer.at("/pattern/String").asText().length()
                                <= normalizer.path("content").asText().length()
                || normalizer.path("type").asText().equals("Sequence");
        for (JsonNode each : normalizer.path("normalizers")) {
            isKeeping &= isKeeping(each);
        }
        return isKeeping;
    }
}
