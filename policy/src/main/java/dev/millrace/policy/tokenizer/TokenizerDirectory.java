package dev.millrace.policy.tokenizer;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.millrace.api.tokenizer.Tokenizer;
import dev.millrace.api.tokenizer.TokenizerSettings;
import java.io.IOException;
import java.nio.charset.CharacterCodingException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.time.LocalDate;
import java.time.format.DateTimeParseException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import org.apache.commons.codec.digest.DigestUtils;

/**
 * The tokenizer part of a Hugging Face directory: {@code tokenizer.json}, the vocabulary size in {@code config.json},
 * and the stop tokens in {@code generation_config.json} or else {@code config.json}.
 *
 * <p>A chat template of {@code chat_template.jinja} or {@code tokenizer_config.json} renders conversations.
 *
 * @param directory directory of the tokenizer's files; empty is {@code model.checkpoint}
 * @param date date that a chat template prints, such as {@code 2026-03-05}; empty for none
 */
public record TokenizerDirectory(String directory, String date) implements TokenizerSettings {
    /** The file that decides the mapping. */
    public static final String FILE = "tokenizer.json";

    /** The files that are read if present. */
    public static final List<String> FILES =
            List.of("config.json", "generation_config.json", ChatFiles.CONFIG, ChatFiles.TEMPLATE, FILE);

    /** More than any tokenizer needs. */
    public static final int MOST_BYTES = 1 << 27;

    private static final List<String> STOPS = List.of("generation_config.json", "config.json");
    private static final ObjectMapper JSON = new ObjectMapper();

    public TokenizerDirectory {
        Objects.requireNonNull(directory, "directory");
        day(date);
    }

    /** Without a date. */
    public TokenizerDirectory(String directory) {
        this(directory, "");
    }

    public static TokenizerDirectory defaults() {
        return new TokenizerDirectory("");
    }

    private static Optional<LocalDate> day(String date) {
        try {
            return date.isEmpty() ? Optional.empty() : Optional.of(LocalDate.parse(date));
        } catch (DateTimeParseException e) {
            throw new IllegalArgumentException("date must be a day such as 2026-03-05, or empty: '" + date + "'", e);
        }
    }

    @Override
    public Tokenizer open() {
        if (directory.isEmpty()) {
            throw new IllegalArgumentException("directory must name a folder with " + FILE + ": it is empty");
        }
        Path folder = Path.of(directory);
        Path file = folder.resolve(FILE);
        if (Files.exists(file) && !Files.isRegularFile(file)) {
            throw new IllegalArgumentException(file + " is not a regular file; give the directory of a checkpoint");
        }
        if (!Files.isRegularFile(file)) {
            throw new IllegalArgumentException(folder + " holds no " + FILE
                    + ", without which nobody knows its tokens; a model in the older formats (tokenizer.model, vocab.json)"
                    + " gets one by saving its fast tokenizer");
        }
        try {
            if (Files.size(file) > MOST_BYTES) {
                throw new IllegalArgumentException(
                        file + " has " + Files.size(file) + " bytes, and no tokenizer needs more than " + MOST_BYTES
                                + "; give the directory of a checkpoint");
            }
            byte[] bytes = Files.readAllBytes(file);
            int vocabulary =
                    json(folder.resolve("config.json")).path("vocab_size").asInt(0);
            return new HuggingFaceTokenizer(
                    bytes, file.toString(), vocabulary, stopTokens(folder), ChatFiles.read(folder, day(date)));
        } catch (IOException e) {
            throw new IllegalArgumentException("cannot read " + file + ": " + e.getMessage(), e);
        }
    }

    /**
     * Copies the files that {@link #open} reads, so that a run keeps its tokenizer.
     *
     * @throws IOException if a file cannot be read or written
     */
    public void copyTo(Path folder) throws IOException {
        Files.createDirectories(folder);
        for (String name : FILES) {
            Path file = Path.of(directory).resolve(name);
            if (isThere(file)) {
                Files.copy(file, folder.resolve(name), StandardCopyOption.REPLACE_EXISTING);
            }
        }
    }

    public TokenizerDirectory in(Path folder) {
        return new TokenizerDirectory(folder.toString(), date);
    }

    /**
     * Hashes of the {@link #FILES}, one line each as in {@code sha256sum}; skips missing ones.
     *
     * @throws IllegalArgumentException if one cannot be read
     */
    public List<String> contents() {
        List<String> lines = new ArrayList<>();
        for (String name : FILES) {
            Path file = Path.of(directory).resolve(name);
            try {
                if (!directory.isEmpty() && isThere(file)) {
                    lines.add(DigestUtils.sha256Hex(Files.readAllBytes(file)) + "  " + name);
                }
            } catch (IOException e) {
                throw new IllegalArgumentException("cannot read " + file + ": " + e.getMessage(), e);
            }
        }
        return lines;
    }

    /** A number or a list of numbers, in the first file that has any. */
    private static List<Integer> stopTokens(Path folder) throws IOException {
        for (String name : STOPS) {
            JsonNode stops = json(folder.resolve(name)).path("eos_token_id");
            List<Integer> ids = new ArrayList<>();
            for (JsonNode each : stops.isArray() ? stops : List.of(stops)) {
                if (each.isInt()) {
                    ids.add(each.intValue());
                }
            }
            if (!ids.isEmpty()) {
                return ids;
            }
        }
        return List.of();
    }

    /** Otherwise a broken link, a pipe or a folder would count as a missing file. */
    private static boolean isThere(Path file) {
        if (Files.exists(file, LinkOption.NOFOLLOW_LINKS) && !Files.isRegularFile(file)) {
            throw new IllegalArgumentException(
                    file + " is not a regular file or a link to one; remove it, or give the whole checkpoint");
        }
        return Files.exists(file);
    }

    static JsonNode json(Path file) throws IOException {
        if (!isThere(file)) {
            return JSON.createObjectNode();
        }
        try {
            return JSON.readTree(file.toFile());
        } catch (JsonProcessingException e) {
            throw new IllegalArgumentException(file + " is not JSON: " + e.getOriginalMessage(), e);
        }
    }

    /**
     * The chat template of a Hugging Face directory: {@code chat_template.jinja}, or else the one in {@code
     * tokenizer_config.json}.
     */
    static final class ChatFiles {
        static final String TEMPLATE = "chat_template.jinja";
        static final String CONFIG = "tokenizer_config.json";
        private static final String DEFAULT = "default";

        private ChatFiles() {}

        /**
         * Reads it; empty if there is none.
         *
         * @throws IOException if an existing file cannot be read
         */
        static Optional<ChatTemplate> read(Path folder, Optional<LocalDate> date) throws IOException {
            JsonNode config = TokenizerDirectory.json(folder.resolve(CONFIG));
            Path own = folder.resolve(TEMPLATE);
            if (isThere(own)) {
                return Optional.of(new ChatTemplate(text(own), own.toString(), specialTokens(config), date));
            }
            JsonNode template = config.path("chat_template");
            if (template.isValueNode() && !template.isTextual() && !template.isNull()) {
                throw new IllegalArgumentException(folder.resolve(CONFIG) + ": chat_template=" + template
                        + ": must be a text, or a list of texts with names");
            }
            return written(template)
                    .map(text ->
                            new ChatTemplate(text, folder.resolve(CONFIG).toString(), specialTokens(config), date));
        }

        private static String text(Path file) throws IOException {
            try {
                return Files.readString(file);
            } catch (CharacterCodingException e) {
                throw new IllegalArgumentException(file + " is not UTF-8 text", e);
            }
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
}
