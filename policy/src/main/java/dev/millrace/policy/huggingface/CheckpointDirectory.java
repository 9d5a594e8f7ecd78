package dev.millrace.policy.huggingface;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.StreamReadConstraints;
import com.fasterxml.jackson.core.StreamReadFeature;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.json.JsonMapper;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.TensorSpec;
import dev.millrace.policy.decoder.WholeTensor;
import dev.millrace.policy.weights.Weights;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * A decoder on disk in Hugging Face's layout: {@code config.json} and one or several {@code *.safetensors}. If there is
 * a {@code model.safetensors.index.json}, only the files that it names are read.
 *
 * <p>Reading converts float16 and bfloat16 to float32, exactly. Writing creates one {@code model.safetensors} of
 * float32. It is moved into place last and atomically, so that a reader finds a whole checkpoint or none.
 *
 * <p>Files hold no value head: one that the caller asks for begins at 0, and {@link #save} leaves it out.
 */
public final class CheckpointDirectory {
    private static final String CONFIG = "config.json";
    static final String TENSORS = "model.safetensors";
    private static final String HEAD = "lm_head.weight";
    private static final String EMBEDDING = "model.embed_tokens.weight";
    /** Older Llama checkpoints store the rotary frequencies, which follow from the config. */
    private static final String DERIVED_SUFFIX = ".rotary_emb.inv_freq";

    static final int MOST_CONFIG_BYTES = 1 << 20;
    /** Largest number of tensors that a message names. */
    private static final int NAMED = 8;

    private static final int COMPARED_AT_ONCE = 1 << 18;
    private static final ObjectMapper JSON = JsonMapper.builder(JsonFactory.builder()
                    .enable(StreamReadFeature.STRICT_DUPLICATE_DETECTION)
                    .streamReadConstraints(
                            StreamReadConstraints.builder().maxNestingDepth(100).build())
                    .build())
            .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
            .build();

    private final Path directory;
    private final int maxTensorElements;
    private final boolean valueHead;

    /** Opens a decoder whose tensors are split only if no buffer holds them. */
    public CheckpointDirectory(Path directory) {
        this(directory, TensorSpec.MOST_ELEMENTS, false);
    }

    /**
     * Opens a decoder with the tensor limit of a run.
     *
     * @param maxTensorElements limit of the shape that is read; files always hold every tensor as a whole
     * @param valueHead whether the shape that is read has one
     */
    public CheckpointDirectory(Path directory, int maxTensorElements, boolean valueHead) {
        this.directory = directory;
        this.maxTensorElements = maxTensorElements;
        this.valueHead = valueHead;
    }

    /**
     * Reads the description alone.
     *
     * @throws CheckpointException if the model is unsupported, naming the key
     */
    public DecoderShape shape() throws IOException {
        String source = directory.resolve(CONFIG).toString();
        return HuggingFaceConfig.read(source, config(), maxTensorElements).withValueHead(valueHead);
    }

    /** Shape of the decoder in the files. */
    static List<WholeTensor> stored(DecoderShape shape) {
        return shape.withValueHead(false).wholes();
    }

    /**
     * Everything in the description that is not supported, a sentence each that names key and value; empty if {@link #shape} can
     * be read.
     *
     * @throws CheckpointException as {@link #config}
     */
    public List<String> unsupported() throws IOException {
        return HuggingFaceConfig.problems(directory.resolve(CONFIG).toString(), config());
    }

    /**
     * Returns the unchanged {@code config.json}, also of an unsupported model.
     *
     * @throws CheckpointException if it is missing or not JSON
     */
    public JsonNode config() throws IOException {
        Path path = directory.resolve(CONFIG);
        if (Files.isRegularFile(directory.resolve(AdapterDirectory.CONFIG))
                && !Files.exists(directory.resolve(TENSORS))
                && !Files.exists(directory.resolve(CheckpointFiles.INDEX))) {
            throw new CheckpointException(directory
                    + " holds an adapter (" + AdapterDirectory.CONFIG + ") and no model; merge it into its base model: "
                    + "./millrace model merge " + directory + " --base BASE --to NEW, and give the folder NEW");
        }
        if (!Files.isRegularFile(path)) {
            throw new CheckpointException(
                    Files.isDirectory(directory)
                            ? directory + " holds no " + CONFIG
                                    + "; give the folder of a model in Hugging Face's layout"
                            : "there is no folder " + directory
                                    + "; give the folder of a model in Hugging Face's layout");
        }
        return json(path, MOST_CONFIG_BYTES, "description of a model");
    }

    static JsonNode json(Path path, int mostBytes, String what) throws IOException {
        byte[] text;
        try (InputStream in = Files.newInputStream(path)) {
            text = in.readNBytes(mostBytes + 1);
        }
        if (text.length > mostBytes) {
            throw new CheckpointException(path + " has more than " + mostBytes + " bytes, which no " + what
                    + " needs; give the directory of a checkpoint");
        }
        try {
            return JSON.readTree(text);
        } catch (JsonProcessingException e) {
            throw new CheckpointException(path + " is not JSON: " + e.getOriginalMessage(), e);
        } catch (IOException e) { // of placeholder bytes, since nothing is read here
            throw new CheckpointException(path + " is not JSON: " + e.getMessage(), e);
        }
    }

    /**
     * Reads description and tensors.
     *
     * @throws CheckpointException if a tensor is missing, has another shape, is not part of the decoder, or has a
     * number that is not finite
     */
    public Weights load() throws IOException {
        DecoderShape shape = shape();
        try (Tensors tensors = new Tensors(shape)) {
            Weights weights = Weights.zeros(shape); // only now, since the files' size is verified
            for (WholeTensor whole : stored(shape)) {
                for (int piece = 0; piece < whole.pieces().size(); piece++) {
                    FloatBuffer values =
                            weights.tensor(whole.pieces().get(piece).name());
                    tensors.read(whole, piece, values);
                    tensors.requireSameHead(whole, piece, values.flip());
                }
            }
            return weights;
        }
    }

    /**
     * Reads everything and discards it, to check whether {@link #load} would succeed, with the memory of the largest
     * tensor.
     *
     * @throws CheckpointException as {@link #load}
     */
    public void check() throws IOException {
        read((spec, bytes) -> {});
    }

    /** Takes one tensor. */
    @FunctionalInterface
    public interface TensorReader {
        /** @param bytes little-endian float32, row-major; valid during the call only */
        void read(TensorSpec spec, ByteBuffer bytes);
    }

    /**
     * Reads one tensor after the other, in the decoder's order, with the memory of the largest.
     *
     * @throws CheckpointException as {@link #load}
     */
    public void read(TensorReader reader) throws IOException {
        DecoderShape shape = shape();
        try (Tensors tensors = new Tensors(shape)) {
            int largest = shape.tensors().stream()
                    .mapToInt(TensorSpec::elementCount)
                    .max()
                    .orElseThrow();
            ByteBuffer buffer = ByteBuffer.allocate(Math.multiplyExact(largest, Float.BYTES))
                    .order(ByteOrder.LITTLE_ENDIAN);
            for (WholeTensor whole : stored(shape)) {
                for (int piece = 0; piece < whole.pieces().size(); piece++) {
                    TensorSpec spec = whole.pieces().get(piece);
                    FloatBuffer values = buffer.clear().asFloatBuffer();
                    tensors.read(whole, piece, values);
                    tensors.requireSameHead(whole, piece, values.flip());
                    reader.read(spec, buffer.limit(spec.elementCount() * Float.BYTES));
                }
            }
            List<TensorSpec> all = shape.tensors();
            for (TensorSpec spec :
                    all.subList(shape.withValueHead(false).tensors().size(), all.size())) {
                reader.read(
                        spec,
                        ByteBuffer.allocate(spec.elementCount() * Float.BYTES).order(ByteOrder.LITTLE_ENDIAN));
            }
        }
    }

    /**
     * Checks that the files have every tensor in its shape and a readable type, without reading the numbers.
     *
     * @throws CheckpointException if not
     */
    public void checkHeaders() throws IOException {
        new Tensors(shape()).close();
    }

    public Path path() {
        return directory;
    }

    /**
     * Position and type of each tensor from the files' headers; works for any model in such files.
     *
     * @return by tensor, in the order of files and of their headers
     * @throws CheckpointException if a file is invalid
     */
    public Map<String, StoredTensor> layout() throws IOException {
        Map<String, StoredTensor> layout = new LinkedHashMap<>();
        for (Path path : new CheckpointFiles(directory).paths()) {
            try (SafetensorsFile file = SafetensorsFile.open(path)) {
                String name = path.getFileName().toString();
                file.entries()
                        .forEach((tensor, entry) -> layout.put(
                                tensor,
                                new StoredTensor(name, entry.type(), entry.dims(), entry.end() - entry.begin())));
            }
        }
        return layout;
    }

    /** The tensors of the files, each with its place in the decoder. */
    private final class Tensors implements AutoCloseable {
        private final List<SafetensorsFile> files = new ArrayList<>();
        private final Map<String, SafetensorsFile> fileOf = new HashMap<>();
        private final DecoderShape shape;

        Tensors(DecoderShape shape) throws IOException {
            this.shape = shape;
            try {
                for (Path path : new CheckpointFiles(directory).paths()) {
                    SafetensorsFile file = SafetensorsFile.open(path);
                    files.add(file);
                    for (String name : file.names()) {
                        if (fileOf.put(name, file) != null) {
                            throw new CheckpointException(directory + ": tensor " + name + " is in two files");
                        }
                    }
                }
                for (WholeTensor whole : stored(shape)) {
                    SafetensorsFile file = fileOf.get(whole.name());
                    if (file == null) {
                        throw new CheckpointException(directory + ": tensor " + whole.name() + " is missing");
                    }
                    file.require(whole.name(), whole.dims());
                }
                SafetensorsFile head = fileOf.get(HEAD);
                if (head != null && shape.tiedHead()) {
                    head.require(HEAD, shape.embedding().dims());
                }
                refuseLeftOver();
            } catch (IOException | RuntimeException e) {
                close();
                throw e;
            }
        }

        /** An unread tensor would be a silently ignored part of the model. */
        private void refuseLeftOver() {
            Set<String> left = new TreeSet<>(fileOf.keySet());
            stored(shape).forEach(whole -> left.remove(whole.name()));
            left.removeIf(name -> name.endsWith(DERIVED_SUFFIX) || shape.tiedHead() && name.equals(HEAD));
            if (!left.isEmpty()) {
                throw new CheckpointException(directory + ": the decoder has no place for "
                        + left.stream().limit(NAMED).collect(Collectors.joining(", "))
                        + (left.size() > NAMED ? " and " + (left.size() - NAMED) + " more" : ""));
            }
        }

        /** Reads one piece of a whole tensor. */
        void read(WholeTensor whole, int piece, FloatBuffer into) throws IOException {
            Objects.requireNonNull(fileOf.get(whole.name()))
                    .read(
                            whole.name(),
                            whole.firstElement(piece),
                            whole.pieces().get(piece).elementCount(),
                            into);
        }

        /** A tied head that is stored again is accepted if it equals the embedding. */
        void requireSameHead(WholeTensor whole, int piece, FloatBuffer embedding) throws IOException {
            SafetensorsFile head = fileOf.get(HEAD);
            if (head == null || !shape.tiedHead() || !whole.name().equals(EMBEDDING)) {
                return;
            }
            FloatBuffer stored = FloatBuffer.allocate(Math.min(COMPARED_AT_ONCE, embedding.limit()));
            for (int from = 0; from < embedding.limit(); from += COMPARED_AT_ONCE) {
                int count = Math.min(COMPARED_AT_ONCE, embedding.limit() - from);
                head.read(HEAD, whole.firstElement(piece) + from, count, stored.clear());
                if (!stored.flip().equals(embedding.slice(from, count))) {
                    throw new CheckpointException(
                            directory + ": tie_word_embeddings is true, but " + HEAD + " differs from " + EMBEDDING);
                }
            }
        }

        @Override
        public void close() throws IOException {
            for (SafetensorsFile file : files) {
                file.close();
            }
        }
    }

    /** Writes description and tensors; creates the directory if need be. */
    public void save(Weights weights) throws IOException {
        Files.createDirectories(directory);
        Files.writeString(
                directory.resolve(CONFIG),
                HuggingFaceConfig.write(weights.shape()).toPrettyString() + "\n");
        Path partial = directory.resolve(TENSORS + ".partial");
        SafetensorsWriter.write(
                partial,
                stored(weights.shape()).stream()
                        .map(whole -> SafetensorsWriter.Tensor.of(whole, whole.name(), "F32", weights.tensors()))
                        .toList());
        Files.move(
                partial,
                directory.resolve(TENSORS),
                StandardCopyOption.ATOMIC_MOVE,
                StandardCopyOption.REPLACE_EXISTING);
    }

    /** Finds the files of a decoder: those that its index names, or all safetensors files without an index. */
    static final class CheckpointFiles {
        private static final String INDEX = "model.safetensors.index.json";
        private static final String SUFFIX = ".safetensors";
        private static final int MOST_INDEX_BYTES = 1 << 27;
        private static final int MOST_FILES = 1000;
        private static final Pattern PLAIN_NAME = Pattern.compile("[A-Za-z0-9_-][A-Za-z0-9._-]*\\.safetensors");

        private final Path directory;

        CheckpointFiles(Path directory) {
            this.directory = directory;
        }

        /** @throws CheckpointException if there are none, or the index contradicts the files */
        List<Path> paths() throws IOException {
            Path index = directory.resolve(INDEX);
            if (!Files.exists(index, LinkOption.NOFOLLOW_LINKS)) {
                return listed();
            }
            if (!Files.isRegularFile(index)) {
                throw new CheckpointException(
                        index + " is not a regular file or a link to one; remove it, or give the whole checkpoint");
            }
            return indexed(index);
        }

        /** Returns the files that the index names. Each must have the tensors that the index lists for it. */
        private List<Path> indexed(Path index) throws IOException {
            JsonNode map = CheckpointDirectory.json(index, MOST_INDEX_BYTES, "index of a model")
                    .path("weight_map");
            if (!map.isObject() || map.isEmpty()) {
                throw new CheckpointException(index + " has no weight_map that gives tensors their files");
            }
            Map<String, Set<String>> tensorsOf = new TreeMap<>();
            for (Map.Entry<String, JsonNode> each : map.properties()) {
                String file = each.getValue().asText();
                if (!each.getValue().isTextual() || !PLAIN_NAME.matcher(file).matches()) {
                    throw new CheckpointException(index + " gives " + each.getKey() + " the file " + each.getValue()
                            + ", which is not the name of a file in the same folder");
                }
                tensorsOf.computeIfAbsent(file, absent -> new TreeSet<>()).add(each.getKey());
            }
            if (!tensorsOf.containsKey(CheckpointDirectory.TENSORS)
                    && Files.exists(directory.resolve(CheckpointDirectory.TENSORS))) {
                throw new CheckpointException(directory + " holds " + CheckpointDirectory.TENSORS + " and " + INDEX
                        + ", which does not name it; remove the one that is not the model");
            }
            List<Path> paths = new ArrayList<>();
            for (Map.Entry<String, Set<String>> each : tensorsOf.entrySet()) {
                Path path = directory.resolve(each.getKey());
                if (!Files.exists(path)) {
                    throw new CheckpointException(index + " names " + each.getKey() + ", which is not there");
                }
                try (SafetensorsFile file = SafetensorsFile.open(path)) {
                    if (!file.names().equals(each.getValue())) {
                        Set<String> different = new TreeSet<>(file.names());
                        different.removeAll(each.getValue());
                        if (different.isEmpty()) {
                            different.addAll(each.getValue());
                            different.removeAll(file.names());
                        }
                        throw new CheckpointException(path + " has other tensors than " + INDEX + " says, such as "
                                + different.iterator().next());
                    }
                }
                paths.add(path);
            }
            return requireCount(paths);
        }

        private List<Path> requireCount(List<Path> paths) {
            if (paths.size() > MOST_FILES) {
                throw new CheckpointException(
                        directory + " holds " + paths.size() + " files *" + SUFFIX + ", more than " + MOST_FILES);
            }
            return paths;
        }

        private List<Path> listed() throws IOException {
            try (Stream<Path> entries = Files.list(directory)) {
                List<Path> paths = entries.filter(
                                path -> path.getFileName().toString().endsWith(SUFFIX))
                        .sorted()
                        .toList();
                if (paths.isEmpty()) {
                    throw new CheckpointException(directory + " holds no *" + SUFFIX + " file");
                }
                return requireCount(paths);
            }
        }
    }
}
