package dev.millrace.policy.tokenizer;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.LocalDate;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** The chat template of a Hugging Face directory: {@code chat_template.jinja}, or else what {@code tokenizer_config.json} says. */
final class ChatFiles {
    static final String TEMPLATE = "chat_template.jinja";
    static final String CONFIG = "tokenizer_config.json";
    private static final String DEFAULT = "default";

    private ChatFiles() {}

    /**
     * Reads it; empty if there is none.
     *
     * @throws IOException if a file is there and cannot be read
     */
    static Optional<ChatTemplate> read(Path folder, Optional<LocalDate> date) throws IOException {
        JsonNode config = TokenizerDirectory.json(folder.resolve(CONFIG));
        Path own = folder.resolve(TEMPLATE);
        if (Files.isRegularFile(own)) {
            return Optional.of(new ChatTemplate(Files.readString(own), own.toString(), specialTokens(config), date));
        }
        return written(config.path("chat_template"))
                .map(text -> new ChatTemplate(text, folder.resolve(CONFIG).toString(), specialTokens(config), date));
    }

    /** A text, or one of several with names. */
    private static Optional<String> written(JsonNode template) {
        if (template.isTextual()) {
            return Optional.of(template.textValue());
        }
        for (JsonNode each : template) {
            if (each.path("name").asText("").equals(DEFAULT)) {
                return Optional.of(each.path("template").asText(""));
            }
        }
        return Optional.empty();
    }

    private static Map<String, String> specialTokens(JsonNode config) {
        Map<String, String> tokens = new HashMap<>();
        for (String name : List.of("bos_token", "eos_token", "unk_token", "pad_token")) {
            JsonNode token = config.path(name);
            String text = token.isObject() ? token.path("content").asText("") : token.asText("");
            if (!text.isEmpty() && !token.isNull()) {
                tokens.put(name, text);
            }
        }
        return tokens;
    }
}
