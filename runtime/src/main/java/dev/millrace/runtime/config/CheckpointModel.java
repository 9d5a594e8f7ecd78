package dev.millrace.runtime.config;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.StreamReadFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.api.environment.TaskSettings;
import dev.millrace.api.tokenizer.Tokenizer;
import dev.millrace.generator.environment.text.TextTask;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.TensorSpec;
import dev.millrace.policy.huggingface.CheckpointDirectory;
import dev.millrace.policy.huggingface.CheckpointException;
import dev.millrace.policy.tokenizer.TokenizerDirectory;
import dev.millrace.policy.weights.Weights;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;

/**
 * A Hugging Face directory as the initial policy of a run. Its {@code config.json} sets the keys of {@code model}, its
 * {@code *.safetensors} are version 0. Its {@code tokenizer.json}, if any, must give the task's symbols the ids of the task.
 */
public final class CheckpointModel {
    private static final String KEY = "checkpoint";
    /** Keys of the run, independent of the checkpoint. */
    private static final String LARGEST = "max_tensor_elements";

    private static final String TOKENIZER = "tokenizer.json";
    private static final ObjectMapper JSON = JsonMapper.builder(JsonFactory.builder()
                    .enable(StreamReadFeature.STRICT_DUPLICATE_DETECTION)
                    .build())
            .build();

    private final CheckpointDirectory directory;

    /** @param model with a {@code checkpoint} */
    public CheckpointModel(ModelConfig model) {
        this(model.checkpoint(), model.maxTensorElements());
    }

    private CheckpointModel(String directory, int maxTensorElements) {
        this.directory = new CheckpointDirectory(Path.of(directory), maxTensorElements, false);
    }

    private CheckpointModel(CheckpointDirectory directory) {
        this.directory = directory;
    }

    /** What a run of this configuration begins with. */
    public static CheckpointModel of(MillraceConfig config) {
        return new CheckpointModel(new CheckpointDirectory(
                Path.of(config.model().checkpoint()),
                config.model().maxTensorElements(),
                config.shape().valueHead()));
    }

    /**
     * Puts the shape of {@code model.checkpoint}, if the tree names one, into the keys of {@code model} that it leaves out.
     *
     * @param tree  the requested configuration
     * @param begun configuration that the run began with; a resumed run takes its shape from there and no longer needs the directory
     * @return the checkpoint, if it was read
     * @throws ConfigException if a given key differs from the checkpoint
     */
    public static Optional<CheckpointModel> fill(ObjectNode tree, ObjectNode begun) {
        String named = tree.at("/model/" + KEY).asText("");
        if (named.isEmpty() || named.equals(begun.at("/model/" + KEY).asText(""))) {
            return Optional.empty();
        }
        CheckpointModel checkpoint = new CheckpointModel(named, TensorSpec.MOST_ELEMENTS);
        ObjectNode model = (ObjectNode) tree.get("model");
        ObjectNode shape = ConfigBinder.unbind(ModelConfig.of(checkpoint.shape(), named));
        shape.remove(KEY);
        shape.remove(LARGEST);
        put(model, shape, "model", named);
        return Optional.of(checkpoint);
    }

    private static void put(ObjectNode into, ObjectNode shape, String path, String named) {
        shape.properties().forEach(entry -> {
            String key = path + "." + entry.getKey();
            JsonNode given = into.get(entry.getKey());
            if (given == null) {
                into.set(entry.getKey(), entry.getValue());
            } else if (given instanceof ObjectNode keys && entry.getValue() instanceof ObjectNode found) {
                put(keys, found, key, named);
            } else if (!same(given, entry.getValue())) {
                throw new ConfigException(key + " is " + shown(given) + " and the checkpoint " + named + " has "
                        + shown(entry.getValue()) + "; leave the key out, or give another model.checkpoint");
            }
        });
    }

    private static String shown(JsonNode node) {
        return node.isValueNode() ? node.asText() : node.toString();
    }

    private static boolean same(JsonNode given, JsonNode found) {
        return given.isNumber() && found.isNumber()
                ? given.asDouble() == found.asDouble()
                : given.asText().equals(found.asText());
    }

    /** Refuses a directory whose vocabulary is not the task's. */
    public void require(TaskSettings task) {
        Tokenizer tokenizer = task.task().tokenizer();
        int found = shape().vocabSize();
        if (found != tokenizer.vocabSize()) {
            throw new ConfigException("model.checkpoint " + directory.path() + " has a vocabulary of " + found
                    + " tokens and the task's has "
                    + tokenizer.vocabSize()
                    + "; give a checkpoint with the task's vocabulary, or train on text with the checkpoint's own:"
                    + " --data FILE");
        }
        Path file = directory.path().resolve(TOKENIZER);
        if (task instanceof TextTask || !Files.exists(file)) {
            return; // the tokenizer is its own, or only the number of its tokens is known; the README says so
        }
        JsonNode ids = vocabulary(file);
        for (int id = 0; id < found; id++) {
            String symbol = tokenizer.decode(new int[] {id});
            if (!ids.path(symbol).isInt() || ids.path(symbol).intValue() != id) {
                throw new ConfigException(
                        file + " gives '" + symbol + "' " + (ids.has(symbol) ? "the id " + ids.get(symbol) : "no id")
                                + " and the task's vocabulary the id " + id
                                + "; the policy would read different tokens");
            }
        }
    }

    private static JsonNode vocabulary(Path file) {
        if (!Files.isRegularFile(file)) {
            throw new ConfigException(file + " is not a regular file; give the directory of a checkpoint");
        }
        byte[] text;
        try (InputStream in = Files.newInputStream(file)) {
            text = in.readNBytes(TokenizerDirectory.MOST_BYTES + 1);
        } catch (IOException e) {
            throw new ConfigException("cannot read " + file + ": " + e.getMessage(), e);
        }
        if (text.length > TokenizerDirectory.MOST_BYTES) {
            throw new ConfigException(file + " has more than " + TokenizerDirectory.MOST_BYTES
                    + " bytes, too many for a tokenizer; give the directory of a checkpoint");
        }
        try {
            JsonNode ids = JSON.readTree(text).at("/model/vocab");
            if (!ids.isObject()) {
                throw new ConfigException(file
                        + " has no model.vocab that gives tokens their ids, so it cannot be compared with the task's");
            }
            return ids;
        } catch (JsonProcessingException e) {
            throw new ConfigException(file + " is not JSON: " + e.getOriginalMessage(), e);
        } catch (IOException e) {
            throw new ConfigException("cannot read " + file + ": " + e.getMessage(), e);
        }
    }

    /** The shape that {@code config.json} says. */
    DecoderShape shape() {
        return read(directory::shape);
    }

    /**
     * Reads the whole checkpoint and discards it, so that a run whose checkpoint cannot be version 0 is refused before
     * it starts.
     */
    public void check() {
        read(() -> {
            directory.check();
            return directory;
        });
    }

    /** The weights, in new buffers that belong to the caller. */
    public Weights weights() {
        return read(directory::load);
    }

    private interface Reading<T> {
        T get() throws IOException;
    }

    private <T> T read(Reading<T> reading) {
        try {
            return reading.get();
        } catch (CheckpointException e) {
            throw new ConfigException("model.checkpoint: " + e.getMessage(), e);
        } catch (IOException e) {
            throw new ConfigException("model.checkpoint: cannot read " + directory.path() + ": " + e.getMessage(), e);
        }
    }
}
