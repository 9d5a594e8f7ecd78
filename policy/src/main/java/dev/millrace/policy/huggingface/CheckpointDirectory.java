package dev.millrace.policy.huggingface;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.TensorSpec;
import dev.millrace.policy.weights.Weights;
import java.io.IOException;
import java.nio.FloatBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

/**
 * A decoder on disk as Hugging Face lays it out: {@code config.json} beside one or several {@code *.safetensors}.
 *
 * <p>Reading converts float16 and bfloat16 to float32, exactly. Writing gives one {@code model.safetensors} of float32, put
 * in place last and at once, so that a reader finds a whole checkpoint or none.
 */
public final class CheckpointDirectory {
    private static final String CONFIG = "config.json";
    private static final String TENSORS = "model.safetensors";
    private static final String SUFFIX = ".safetensors";
    private static final String HEAD = "lm_head.weight";
    private static final String EMBEDDING = "model.embed_tokens.weight";
    /** Older Llama checkpoints store the rotary frequencies, which follow from the config. */
    private static final String DERIVED_SUFFIX = ".rotary_emb.inv_freq";

    private static final ObjectMapper JSON = new ObjectMapper();

    private final Path directory;

    public CheckpointDirectory(Path directory) {
        this.directory = directory;
    }

    /**
     * Reads the description alone.
     *
     * @throws CheckpointException if the model is not one of ours, naming the key
     */
    public DecoderShape shape() throws IOException {
        Path path = directory.resolve(CONFIG);
        if (!Files.isRegularFile(path)) {
            throw new CheckpointException(directory + " holds no " + CONFIG);
        }
        try {
            JsonNode json = JSON.readTree(path.toFile());
            return HuggingFaceConfig.read(path.toString(), json);
        } catch (JsonProcessingException e) {
            throw new CheckpointException(path + " is not JSON: " + e.getOriginalMessage(), e);
        }
    }

    /**
     * Reads description and tensors.
     *
     * @throws CheckpointException if a tensor is missing, has another shape, or is none of the decoder's
     */
    public Weights load() throws IOException {
        DecoderShape shape = shape();
        Weights weights = Weights.zeros(shape);
        Map<String, SafetensorsFile> byTensor = new HashMap<>();
        List<SafetensorsFile> files = new ArrayList<>();
        try {
            for (Path path : safetensors()) {
                SafetensorsFile file = SafetensorsFile.open(path);
                files.add(file);
                for (String name : file.names()) {
                    if (byTensor.put(name, file) != null) {
                        throw new CheckpointException(directory + ": tensor " + name + " is in two files");
                    }
                }
            }
            for (TensorSpec spec : shape.tensors()) {
                SafetensorsFile file = byTensor.remove(spec.name());
                if (file == null) {
                    throw new CheckpointException(directory + ": tensor " + spec.name() + " is missing");
                }
                file.read(spec, weights.tensor(spec.name()));
            }
            refuseLeftOver(weights, byTensor);
        } finally {
            for (SafetensorsFile file : files) {
                file.close();
            }
        }
        return weights;
    }

    private List<Path> safetensors() throws IOException {
        try (Stream<Path> entries = Files.list(directory)) {
            List<Path> paths = entries.filter(
                            path -> path.getFileName().toString().endsWith(SUFFIX))
                    .sorted()
                    .toList();
            if (paths.isEmpty()) {
                throw new CheckpointException(directory + " holds no *" + SUFFIX + " file");
            }
            return paths;
        }
    }

    /**
     * A tensor nobody reads is a part of the model we would silently leave out; a tied head stored once more is none, if it
     * is the same.
     */
    private void refuseLeftOver(Weights weights, Map<String, SafetensorsFile> left) throws IOException {
        left.keySet().removeIf(name -> name.endsWith(DERIVED_SUFFIX));
        SafetensorsFile head = weights.shape().tiedHead() ? left.remove(HEAD) : null;
        if (head != null) {
            TensorSpec spec = TensorSpec.of(
                    HEAD, weights.shape().vocabSize(), weights.shape().hiddenSize());
            FloatBuffer stored = FloatBuffer.allocate(spec.elementCount());
            head.read(spec, stored);
            if (!stored.flip().equals(weights.tensor(EMBEDDING))) {
                throw new CheckpointException(
                        directory + ": tie_word_embeddings is true, but " + HEAD + " differs from " + EMBEDDING);
            }
        }
        if (!left.isEmpty()) {
            throw new CheckpointException(directory + ": the decoder has no place for "
                    + left.keySet().stream().sorted().toList());
        }
    }

    /** Writes description and tensors; creates the directory if need be. */
    public void save(Weights weights) throws IOException {
        Files.createDirectories(directory);
        Files.writeString(
                directory.resolve(CONFIG),
                HuggingFaceConfig.write(weights.shape()).toPrettyString() + "\n");
        Path partial = directory.resolve(TENSORS + ".partial");
        SafetensorsFile.write(partial, weights.tensors());
        Files.move(
                partial,
                directory.resolve(TENSORS),
                StandardCopyOption.ATOMIC_MOVE,
                StandardCopyOption.REPLACE_EXISTING);
    }
}
