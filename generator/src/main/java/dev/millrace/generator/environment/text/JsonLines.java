package dev.millrace.generator.environment.text;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.StreamReadFeature;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectReader;
import com.fasterxml.jackson.databind.cfg.JsonNodeFeature;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.api.dataset.DataRow;
import dev.millrace.api.dataset.Dataset;
import dev.millrace.api.dataset.DatasetSettings;
import dev.millrace.api.tokenizer.ChatMessage;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.nio.file.AccessDeniedException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.regex.Pattern;
import org.apache.commons.codec.digest.DigestUtils;
import org.jspecify.annotations.Nullable;

/**
 * A file of JSON lines: {@code {"prompt": TEXT, "answer": ..., any more}} each.
 *
 * @param file JSON lines with {@code prompt}, {@code answer} if the reward compares with one, and other fields
 */
public record JsonLines(String file) implements DatasetSettings {

    public JsonLines {
        Objects.requireNonNull(file, "file");
    }

    /** No file yet. */
    public static JsonLines defaults() {
        return new JsonLines("");
    }

    @Override
    public Dataset open() {
        if (file.isEmpty()) {
            throw new IllegalArgumentException("file must name a file of JSON lines: it is empty");
        }
        return JsonLinesFile.read(Path.of(file));
    }

    /** The rows of a file, all in memory. Blank lines are none. */
    static final class JsonLinesFile implements Dataset {
        private static final ObjectReader JSON = JsonMapper.builder()
                .enable(StreamReadFeature.STRICT_DUPLICATE_DETECTION)
                .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
                .enable(DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS)
                .disable(JsonNodeFeature.STRIP_TRAILING_BIGDECIMAL_ZEROES)
                .build()
                .reader();
        /** What stands in every prompt request is bounded, as records are. */
        private static final int MOST_STATE_CHARACTERS = 100_000;

        private static final String BYTE_ORDER_MARK = "\uFEFF";
        /** Of a character that two of them make; JSON can write one alone, and no tokenizer can. */
        private static final Pattern HALF_CHARACTER = Pattern.compile("\\p{Cs}");

        /** What Jackson says of a place that it does not keep. */
        private static final Pattern WHERE = Pattern.compile("(?s) \\(start marker at .*");

        private static final String ONE_A_LINE = "; write each row as an object on one line";

        /** The bytes, their text twice, and its rows, next to the rest of a run's memory. */
        private static final int HEAP_BYTES_PER_BYTE = 12;

        private final Path file;
        private final List<DataRow> rows;
        private final List<Integer> lines;
        private final String hash;

        private JsonLinesFile(Path file, List<DataRow> rows, List<Integer> lines, String hash) {
            this.file = file;
            this.rows = rows;
            this.lines = lines;
            this.hash = hash;
        }

        static JsonLinesFile read(Path file) {
            byte[] bytes;
            String text;
            try {
                bytes = bytes(file);
                text = StandardCharsets.UTF_8
                        .newDecoder()
                        .decode(ByteBuffer.wrap(bytes))
                        .toString();
            } catch (NoSuchFileException e) {
                throw new IllegalArgumentException("there is no file " + file, e);
            } catch (AccessDeniedException e) {
                throw new IllegalArgumentException(
                        "cannot read " + file + ": permission denied to user " + System.getProperty("user.name"), e);
            } catch (CharacterCodingException e) {
                throw new IllegalArgumentException(file + " is not UTF-8 text", e);
            } catch (IOException e) {
                throw new IllegalArgumentException("cannot read " + file + ": " + e.getMessage(), e);
            }
            List<DataRow> rows = new ArrayList<>();
            List<Integer> lines = new ArrayList<>();
            int number = 0;
            for (String line : (text.startsWith(BYTE_ORDER_MARK) ? text.substring(1) : text).split("\n", -1)) {
                number++;
                if (!line.isBlank()) {
                    rows.add(row(line, file + " line " + number));
                    lines.add(number);
                }
            }
            if (rows.isEmpty()) {
                throw new IllegalArgumentException(
                        file + " has no row: it needs a line such as {\"prompt\": \"Once upon a time\"}");
            }
            return new JsonLinesFile(file, List.copyOf(rows), List.copyOf(lines), DigestUtils.sha256Hex(bytes));
        }

        private static byte[] bytes(Path file) throws IOException {
            if (Files.exists(file) && !Files.isRegularFile(file)) {
                throw new IllegalArgumentException(
                        file + " is a folder, a pipe or a device, and data is read on every start; write it to a file");
            }
            long size = Files.size(file);
            long room = Runtime.getRuntime().maxMemory() / HEAP_BYTES_PER_BYTE;
            if (size > room) {
                throw new IllegalArgumentException(
                        file + " has " + size + " bytes; all rows are held in memory, and the heap's "
                                + Runtime.getRuntime().maxMemory() + " bytes fit a file of " + room
                                + "; raise it (MILLRACE_OPTS=-Xmx8g), or give fewer rows");
            }
            return Files.readAllBytes(file);
        }

        private static DataRow row(String line, String place) {
            ObjectNode row;
            try {
                JsonNode read = JSON.readTree(line);
                if (!(read instanceof ObjectNode object)) {
                    throw new IllegalArgumentException(place + " is not a JSON object" + ONE_A_LINE);
                }
                row = object;
            } catch (JsonProcessingException e) {
                throw new IllegalArgumentException(
                        place + " is not JSON: "
                                + WHERE.matcher(e.getOriginalMessage()).replaceFirst("") + ONE_A_LINE,
                        e);
            }
            if (HALF_CHARACTER.matcher(row.toString()).find()) {
                throw new IllegalArgumentException(
                        place + " has an unpaired surrogate (\\ud800 to \\udfff); fix the text");
            }
            JsonNode messages = row.remove("messages");
            JsonNode prompt = row.remove("prompt");
            if (messages != null && prompt != null) {
                throw new IllegalArgumentException(
                        place + " has both a \"prompt\" and \"messages\"; leave one of them out");
            }
            if (messages == null
                    && (prompt == null
                            || !prompt.isTextual()
                            || prompt.textValue().isEmpty())) {
                throw new IllegalArgumentException(
                        place + " needs a \"prompt\" that is a text of at least one character, or \"messages\": "
                                + shown(prompt));
            }
            String state = row.toString();
            if (state.length() > MOST_STATE_CHARACTERS) {
                throw new IllegalArgumentException(place + " says " + state.length()
                        + " characters without its prompt, and a prompt request carries at most "
                        + MOST_STATE_CHARACTERS);
            }
            return prompt == null
                    ? new DataRow(conversation(Objects.requireNonNull(messages), place), state)
                    : new DataRow(prompt.textValue(), state);
        }

        private static List<ChatMessage> conversation(JsonNode messages, String place) {
            List<ChatMessage> conversation = new ArrayList<>();
            for (JsonNode message : messages) {
                JsonNode role = message.path("role");
                JsonNode content = message.path("content");
                if (message.size() != 2 || !role.isTextual() || role.textValue().isEmpty() || !content.isTextual()) {
                    throw new IllegalArgumentException(
                            place + " has a message that is not {\"role\": TEXT, \"content\": TEXT}"
                                    + " and nothing else, at " + conversation.size());
                }
                conversation.add(new ChatMessage(role.textValue(), content.textValue()));
            }
            if (!messages.isArray() || conversation.isEmpty()) {
                throw new IllegalArgumentException(
                        place + " needs \"messages\" that are a list of at least one message");
            }
            return conversation;
        }

        private static String shown(@Nullable JsonNode node) {
            return node == null ? "there is none" : "it is " + (node.isTextual() ? "empty" : node.getNodeType());
        }

        @Override
        public int size() {
            return rows.size();
        }

        @Override
        public DataRow row(int index) {
            return rows.get(index);
        }

        @Override
        public String place(int index) {
            return file + " line " + lines.get(index);
        }

        @Override
        public String hash() {
            return hash;
        }
    }
}
