package dev.millrace.runtime.config;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.StreamReadConstraints;
import com.fasterxml.jackson.core.StreamReadFeature;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.fasterxml.jackson.dataformat.yaml.YAMLFactory;
import com.fasterxml.jackson.dataformat.yaml.YAMLGenerator;
import com.fasterxml.jackson.dataformat.yaml.YAMLMapper;
import com.fasterxml.jackson.dataformat.yaml.YAMLParser;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.yaml.snakeyaml.error.MarkedYAMLException;

/** The configuration as written: a YAML file overridden by {@code key=value} settings. */
public final class ConfigTree {
    private static final Pattern INDEX = Pattern.compile("\\[(\\d+)]");
    private static final BoundedText TEXT = new BoundedText(Duration.ofSeconds(30));
    private static final int MOST_DEPTH = 32;
    private static final YAMLMapper YAML = YAMLMapper.builder(YAMLFactory.builder()
                    .streamReadConstraints(StreamReadConstraints.builder()
                            .maxNestingDepth(MOST_DEPTH)
                            .maxStringLength(BoundedText.MOST_BYTES)
                            .build())
                    .enable(StreamReadFeature.STRICT_DUPLICATE_DETECTION)
                    // 'off' is a kind of divergence and 'on' may be a name: only true and false are booleans
                    .enable(YAMLParser.Feature.PARSE_BOOLEAN_LIKE_WORDS_AS_STRINGS)
                    .disable(YAMLGenerator.Feature.WRITE_DOC_START_MARKER)
                    .enable(YAMLGenerator.Feature.MINIMIZE_QUOTES)
                    .enable(YAMLGenerator.Feature.ALWAYS_QUOTE_NUMBERS_AS_STRINGS)
                    .build())
            .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
            .build();

    /**
     * Internal key for a word that stood for a whole group before single keys overrode it: {@code
     * objective=gspo}, then {@code objective.clip_ratio_low=3e-4}.
     */
    static final String WORD = "";

    private ConfigTree() {}

    /** An empty configuration: only defaults. */
    public static ObjectNode empty() {
        return JsonNodeFactory.instance.objectNode();
    }

    /**
     * Reads a YAML file whose top level is a mapping.
     *
     * @throws ConfigException if it cannot be read or is not such a file
     */
    public static ObjectNode read(Path file) {
        try {
            return parse(TEXT.read(file), file.toString());
        } catch (NoSuchFileException e) {
            throw new ConfigException("there is no configuration file " + file, e);
        } catch (IOException e) {
            throw new ConfigException("cannot read the configuration file " + file + ": " + e.getMessage(), e);
        }
    }

    /**
     * Reads YAML whose top level is a mapping.
     *
     * @param name of the source, for messages
     * @throws ConfigException if it is not such a text
     */
    public static ObjectNode parse(String text, String name) {
        JsonNode tree;
        try {
            requireNoAliases(text, name);
            tree = YAML.readTree(text);
        } catch (IOException e) {
            // without its cause, which quotes the line: that may hold a password
            throw new ConfigException(name + " is not valid YAML" + problem(e));
        }
        if (tree == null || tree.isMissingNode() || tree.isNull()) {
            return empty();
        }
        if (!(tree instanceof ObjectNode object)) {
            throw new ConfigException(name + " must hold keys and values at its top level, such as 'learner:'");
        }
        return object;
    }

    /**
     * Sets one {@code a.b.c=value}; the value is read as YAML, so {@code true}, {@code 3} and {@code [1, 2]} have their
     * YAML types.
     */
    public static void set(ObjectNode tree, String setting) {
        int equals = setting.indexOf('=');
        if (equals < 1) {
            throw new ConfigException("--set expects key=value, such as --set algorithm.epochs=2: '" + setting + "'");
        }
        JsonNode value;
        try {
            requireNoAliases(
                    setting.substring(equals + 1), "--set " + setting.substring(0, equals) + "=...: the value");
            value = YAML.readTree(setting.substring(equals + 1));
        } catch (IOException e) {
            throw new ConfigException(
                    "--set " + setting.substring(0, equals) + "=...: the value is not valid YAML" + problem(e));
        }
        if (value == null || value.isMissingNode() || value.isNull()) {
            value = JsonNodeFactory.instance.textNode("");
        }
        put(tree, setting.substring(0, equals).trim(), value);
    }

    /** An alias would be read as the text of its name. */
    private static void requireNoAliases(String text, String name) throws IOException {
        if (text.length() > BoundedText.MOST_BYTES) {
            throw new ConfigException(name + " has " + text.length() + " characters, more than "
                    + BoundedText.MOST_BYTES + ", which no configuration needs");
        }
        try (YAMLParser parser = YAML.getFactory().createParser(text)) {
            while (parser.nextToken() != null) {
                if (parser.isCurrentAlias()) {
                    throw new ConfigException(name + " refers to an anchor, *" + parser.getText() + ", at line "
                            + parser.currentTokenLocation().getLineNr()
                            + "; anchors and aliases are not supported; write the value out, or quote it if"
                            + " it is a text that starts with *");
                }
            }
        }
    }

    /** Sets {@code a.b.c} to text, even if it looks like a number. */
    static void set(ObjectNode tree, String key, String text) {
        put(tree, key, JsonNodeFactory.instance.textNode(text));
    }

    private static void put(ObjectNode tree, String key, JsonNode value) {
        // client settings are one key with dots in it: kafka.max.poll.records
        String[] path = key.startsWith("kafka.")
                ? key.split("\\.", 2)
                : INDEX.matcher(key).replaceAll(".$1").split("\\.");
        if (Arrays.asList(path).contains("")) {
            throw new ConfigException("--set expects key=value, and a part of this key is empty: '" + key + "'");
        }
        JsonNode at = tree;
        for (int i = 0; i < path.length - 1; i++) {
            JsonNode next = at instanceof ArrayNode array ? array.get(element(array, path[i], key)) : at.get(path[i]);
            if (next == null || next.isValueNode() || next instanceof ArrayNode && !isIndex(path[i + 1])) {
                next = group(next);
                put(at, path[i], next, key);
            }
            at = next;
        }
        put(at, path[path.length - 1], value, key);
    }

    private static void put(JsonNode at, String name, JsonNode value, String key) {
        if (at instanceof ArrayNode array) {
            int index = element(array, name, key);
            if (index == array.size()) {
                array.add(value);
            } else {
                array.set(index, value);
            }
        } else {
            ((ObjectNode) at).set(name, value);
        }
    }

    private static int element(ArrayNode array, String name, String key) {
        int index = isIndex(name) ? Integer.parseInt(name) : Integer.MAX_VALUE;
        if (index > array.size()) {
            throw new ConfigException(key + " is not an element of a list of " + array.size() + ": " + name);
        }
        return index;
    }

    /** Base of a group: nothing, or the word that stood for the whole group. */
    private static ObjectNode group(@Nullable JsonNode before) {
        ObjectNode group = empty();
        if (before != null && before.isTextual() && !before.textValue().isEmpty()) {
            group.set(WORD, before);
        }
        return group;
    }

    /** Merges one tree into another: groups key by key, list elements by index. */
    static void merge(ObjectNode into, ObjectNode over) {
        over.properties().forEach(entry -> {
            JsonNode before = into.get(entry.getKey());
            if (!(entry.getValue() instanceof ObjectNode nested)) {
                into.set(entry.getKey(), entry.getValue().deepCopy());
            } else if (before instanceof ArrayNode array && isIndexed(nested)) {
                nested.properties()
                        .forEach(element -> merge(array, entry.getKey(), element.getKey(), element.getValue()));
            } else {
                ObjectNode group = before instanceof ObjectNode existing ? existing : group(before);
                into.set(entry.getKey(), group);
                merge(group, nested);
            }
        });
    }

    private static void merge(ArrayNode array, String key, String name, JsonNode over) {
        int index = element(array, name, key);
        JsonNode before = array.get(index);
        if (over instanceof ObjectNode nested) {
            ObjectNode group = before instanceof ObjectNode existing ? existing : group(before);
            put(array, name, group, key);
            merge(group, nested);
        } else {
            put(array, name, over.deepCopy(), key);
        }
    }

    /** Returns whether a group's keys are indices of a list. */
    static boolean isIndexed(ObjectNode group) {
        return !group.isEmpty() && group.propertyStream().allMatch(entry -> isIndex(entry.getKey()));
    }

    private static boolean isIndex(String name) {
        return name.length() < 5 && name.chars().allMatch(c -> c >= '0' && c <= '9') && !name.isEmpty();
    }

    /** Position and problem on one line; the parser's own message spans several. */
    private static String problem(IOException e) {
        if (!(e instanceof JsonProcessingException processing)) {
            return ": " + e.getMessage();
        }
        if (e.getCause() instanceof MarkedYAMLException marked && marked.getProblemMark() != null) {
            return " at line " + (marked.getProblemMark().getLine() + 1) + ", column "
                    + (marked.getProblemMark().getColumn() + 1) + ": " + marked.getProblem();
        }
        return (processing.getLocation() == null
                        ? ""
                        : " at line " + processing.getLocation().getLineNr()) + ": "
                + processing.getOriginalMessage().lines().map(String::strip).collect(Collectors.joining(" "));
    }

    public static String write(JsonNode tree) {
        try {
            return YAML.writeValueAsString(tree);
        } catch (JsonProcessingException e) {
            throw new IllegalStateException("a configuration tree can always be written", e);
        }
    }

    /**
     * Reads a hand-written text file. Stops after {@value #MOST_BYTES} bytes of an endless device, and times out on a
     * pipe without a writer.
     */
    static final class BoundedText {
        static final int MOST_BYTES = 1 << 20;

        private final Duration patience;

        /** @param patience for a file that is not regular, such as a pipe */
        BoundedText(Duration patience) {
            this.patience = patience;
        }

        /**
         * Reads all of it.
         *
         * @throws ConfigException if it exceeds the limits, or is not text
         * @throws IOException if it cannot be read
         */
        String read(Path file) throws IOException {
            byte[] bytes = Files.isRegularFile(file) ? bytes(file) : within(file);
            if (bytes.length > MOST_BYTES) {
                throw new ConfigException("the configuration file " + file + " has more than " + MOST_BYTES
                        + " bytes, too many for a configuration; give a YAML file with a few keys");
            }
            try {
                return StandardCharsets.UTF_8
                        .newDecoder()
                        .decode(ByteBuffer.wrap(bytes))
                        .toString();
            } catch (CharacterCodingException e) {
                throw new ConfigException(
                        "the configuration file " + file + " is not UTF-8 text; save it as UTF-8, or give another file",
                        e);
            }
        }

        private static byte[] bytes(Path file) throws IOException {
            try (InputStream in = Files.newInputStream(file)) {
                return in.readNBytes(MOST_BYTES + 1);
            }
        }

        private byte[] within(Path file) throws IOException {
            FutureTask<byte[]> reading = new FutureTask<>(() -> bytes(file));
            Thread thread = new Thread(reading, "configuration file"); // one that waits in open() cannot be interrupted
            thread.setDaemon(true);
            thread.start();
            try {
                return reading.get(patience.toMillis(), TimeUnit.MILLISECONDS);
            } catch (TimeoutException e) {
                throw new ConfigException(
                        "the configuration file " + file + " is a pipe or a device, and it did not end within "
                                + patience.toSeconds() + " s; write to it and close it, or give a regular file",
                        e);
            } catch (ExecutionException e) {
                throw e.getCause() instanceof IOException cause ? cause : new IOException(e.getCause());
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                throw new IOException("interrupted while reading", e);
            }
        }
    }
}
