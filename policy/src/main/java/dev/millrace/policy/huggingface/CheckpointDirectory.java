package dev.millrace.policy.huggingface;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.StreamReadConstraints;
import com.fasterxml.jackson.core.StreamReadFeature;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.json.JsonMapper;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.TensorSpec;
import dev.millrace.policy.weights.Weights;
import java.io.IOException;
import java.io.InputStream;
import java.nio.FloatBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;
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

    private static final int MOST_CONFIG_BYTES = 1 << 20;
    private static final int MOST_FILES = 1000;
    private static final ObjectMapper JSON = JsonMapper.builder(JsonFactory.builder()
                    .enable(StreamReadFeature.STRICT_DUPLICATE_DETECTION)
                    .streamReadConstraints(
                            StreamReadConstraints.builder().maxNestingDepth(100).build())
                    .build())
            .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
            .build();

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
        byte[] text;
        try (InputStream in = Files.newInputStream(path)) {
            text = in.readNBytes(MOST_CONFIG_BYTES + 1);
        }
        if (text.length > MOST_CONFIG_BYTES) {
            throw new CheckpointException(path + " has more than " + MOST_CONFIG_BYTES
                    + " bytes, which no description of a model needs; give the directory of a checkpoint");
        }
        try {
            return HuggingFaceConfig.read(path.toString(), JSON.readTree(text));
        } catch (JsonProcessingException e) {
            throw new CheckpointException(path + " is not JSON: " + e.getOriginalMessage(), e);
        }
    }

    /**
     * Reads description and tensors.
     *
     * @throws CheckpointException if a tensor is missing, has another shape, is none of the decoder's, or has a number that is not
     *     finite
     */
    public Weights load() throws IOException {
        DecoderShape shape = shape();
        try (Tensors tensors = new Tensors(shape)) {
            Weights weights = Weights.zeros(shape); // only now, when files of that size are there
            for (TensorSpec spec : shape.tensors()) {
                tensors.read(spec, weights.tensor(spec.name()));
            }
            if (shape.tiedHead()) {
                tensors.requireSameHead(weights.tensor(EMBEDDING));
            }
            return weights;
        }
    }

    /**
     * Reads everything and keeps nothing: whether {@link #load} would succeed, with the memory of the largest tensor.
     *
     * @throws CheckpointException as {@link #load}
     */
    public void check() throws IOException {
        DecoderShape shape = shape();
        try (Tensors tensors = new Tensors(shape)) {
            int largest = shape.tensors().stream()
                    .mapToInt(TensorSpec::elementCount)
                    .max()
                    .orElseThrow();
            FloatBuffer buffer = FloatBuffer.allocate(largest);
            for (TensorSpec spec : shape.tensors()) {
                tensors.read(spec, buffer.clear());
                if (spec.name().equals(EMBEDDING) && shape.tiedHead()) {
                    tensors.requireSameHead(buffer.flip());
                }
            }
        }
    }

    /** The files' tensors, each of which has its place in the decoder. */
    private final class Tensors implements AutoCloseable {
        private final List<SafetensorsFile> files = new ArrayList<>();
        private final Map<String, SafetensorsFile> fileOf = new HashMap<>();
        private final DecoderShape shape;

        Tensors(DecoderShape shape) throws IOException {
            this.shape = shape;
            try {
                for (Path path : safetensors()) {
                    SafetensorsFile file = SafetensorsFile.open(path);
                    files.add(file);
                    for (String name : file.names()) {
                        if (fileOf.put(name, file) != null) {
                            throw new CheckpointException(directory + ": tensor " + name + " is in two files");
                        }
                    }
                }
                for (TensorSpec spec : shape.tensors()) {
                    SafetensorsFile file = fileOf.get(spec.name());
                    if (file == null) {
                        throw new CheckpointException(directory + ": tensor " + spec.name() + " is missing");
                    }
                    file.require(spec);
                }
                refuseLeftOver();
            } catch (IOException | RuntimeException e) {
                close();
                throw e;
            }
        }

        /** A tensor nobody reads is a part of the model we would silently leave out. */
        private void refuseLeftOver() {
            Set<String> left = new TreeSet<>(fileOf.keySet());
            shape.tensors().forEach(spec -> left.remove(spec.name()));
            left.removeIf(name -> name.endsWith(DERIVED_SUFFIX) || shape.tiedHead() && name.equals(HEAD));
            if (!left.isEmpty()) {
                throw new CheckpointException(directory + ": the decoder has no place for " + left);
            }
        }

        void read(TensorSpec spec, FloatBuffer into) throws IOException {
            Objects.requireNonNull(fileOf.get(spec.name())).read(spec, into);
        }

        /** A tied head stored once more is no part of its own, if it is the same. */
        void requireSameHead(FloatBuffer embedding) throws IOException {
            SafetensorsFile head = fileOf.get(HEAD);
            if (head == null) {
                return;
            }
            TensorSpec spec = TensorSpec.of(HEAD, shape.vocabSize(), shape.hiddenSize());
            FloatBuffer stored = FloatBuffer.allocate(spec.elementCount());
            head.read(spec, stored);
            if (!stored.flip().equals(embedding)) {
                throw new CheckpointException(
                        directory + ": tie_word_embeddings is true, but " + HEAD + " differs from " + EMBEDDING);
            }
        }

        @Override
        public void close() throws IOException {
            for (SafetensorsFile file : files) {
                file.close();
            }
        }
    }

    private List<Path> safetensors() throws IOException {
        try (Stream<Path> entries = Files.list(directory)) {
            List<Path> paths = entries.filter(
                            path -> path.getFileName().toString().endsWith(SUFFIX))
                    .sorted()
                    .toList();
            if (paths.size() > MOST_FILES) {
                throw new CheckpointException(
                        directory + " holds " + paths.size() + " files *" + SUFFIX + ", more than " + MOST_FILES);
            }
            if (paths.isEmpty()) {
                throw new CheckpointException(directory + " holds no *" + SUFFIX + " file");
            }
            return paths;
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
