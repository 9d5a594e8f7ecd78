package dev.millrace.runtime.config;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.StreamReadFeature;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.fasterxml.jackson.dataformat.yaml.YAMLFactory;
import com.fasterxml.jackson.dataformat.yaml.YAMLGenerator;
import com.fasterxml.jackson.dataformat.yaml.YAMLMapper;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.stream.Collectors;
import org.yaml.snakeyaml.error.MarkedYAMLException;

/** The configuration as it was written: a YAML file with {@code key=value} settings put over it. */
public final class ConfigTree {
    private static final YAMLMapper YAML = YAMLMapper.builder(YAMLFactory.builder()
                    .enable(StreamReadFeature.STRICT_DUPLICATE_DETECTION)
                    .disable(YAMLGenerator.Feature.WRITE_DOC_START_MARKER)
                    .enable(YAMLGenerator.Feature.MINIMIZE_QUOTES)
                    .enable(YAMLGenerator.Feature.ALWAYS_QUOTE_NUMBERS_AS_STRINGS)
                    .build())
            .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
            .build();

    private ConfigTree() {}

    /** An empty configuration: everything as it is by default. */
    public static ObjectNode empty() {
        return JsonNodeFactory.instance.objectNode();
    }

    /**
     * Reads a YAML file whose top level is a mapping.
     *
     * @throws ConfigException if it cannot be read or is no such file
     */
    public static ObjectNode read(Path file) {
        try {
            return parse(Files.readString(file), file.toString());
        } catch (NoSuchFileException e) {
            throw new ConfigException("there is no configuration file " + file, e);
        } catch (IOException e) {
            throw new ConfigException("cannot read the configuration file " + file + ": " + e.getMessage(), e);
        }
    }

    /**
     * Reads YAML whose top level is a mapping.
     *
     * @param name what it is, for a sentence
     * @throws ConfigException if it is no such text
     */
    public static ObjectNode parse(String text, String name) {
        JsonNode tree;
        try {
            tree = YAML.readTree(text);
        } catch (JsonProcessingException e) {
            // without its cause, which draws the line, and a password with odd characters is what YAML stumbles over
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
     * Puts one {@code a.b.c=value} over the tree; the value is read as YAML, so {@code true}, {@code 3} and
     * {@code [1, 2]} mean what they look like.
     */
    public static void set(ObjectNode tree, String setting) {
        int equals = setting.indexOf('=');
        if (equals < 1) {
            throw new ConfigException("--set wants key=value, such as --set learner.step.epochs=2: '" + setting + "'");
        }
        JsonNode value;
        try {
            value = YAML.readTree(setting.substring(equals + 1));
        } catch (JsonProcessingException e) {
            throw new ConfigException(
                    "--set " + setting.substring(0, equals) + "=...: the value is not valid YAML" + problem(e));
        }
        if (value == null || value.isMissingNode() || value.isNull()) {
            value = JsonNodeFactory.instance.textNode("");
        }
        put(tree, setting.substring(0, equals).trim(), value);
    }

    /** Puts text under {@code a.b.c}, whatever it looks like. */
    static void set(ObjectNode tree, String key, String text) {
        put(tree, key, JsonNodeFactory.instance.textNode(text));
    }

    private static void put(ObjectNode tree, String key, JsonNode value) {
        // client settings are one key with dots in it: kafka.max.poll.records
        String[] path = key.startsWith("kafka.") ? key.split("\\.", 2) : key.split("\\.");
        ObjectNode at = tree;
        for (int i = 0; i < path.length - 1; i++) {
            JsonNode next = at.get(path[i]);
            at = next instanceof ObjectNode object ? object : at.putObject(path[i]);
        }
        at.set(path[path.length - 1], value);
    }

    /** Where and what, on one line: the parser's own message draws the place over several. */
    private static String problem(JsonProcessingException e) {
        if (e.getCause() instanceof MarkedYAMLException marked && marked.getProblemMark() != null) {
            return " at line " + (marked.getProblemMark().getLine() + 1) + ", column "
                    + (marked.getProblemMark().getColumn() + 1) + ": " + marked.getProblem();
        }
        return (e.getLocation() == null ? "" : " at line " + e.getLocation().getLineNr()) + ": "
                + e.getOriginalMessage().lines().map(String::strip).collect(Collectors.joining(" "));
    }

    /** The tree as YAML text. */
    public static String write(JsonNode tree) {
        try {
            return YAML.writeValueAsString(tree);
        } catch (JsonProcessingException e) {
            throw new IllegalStateException("a configuration tree can always be written", e);
        }
    }
}
