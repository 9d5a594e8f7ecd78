package dev.millrace.policy.huggingface;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.WholeTensor;
import dev.millrace.policy.weights.Weights;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.commons.codec.digest.DigestUtils;

/**
 * Writes a decoder as a new Hugging Face directory, completely or not at all.
 *
 * <p>A directory written in float32 or in the type of the weights loads again bit for bit. For float16 and bfloat16,
 * values are rounded, ties to even. Used once.
 */
public final class CheckpointExport {
    /** The types that a decoder can be written in, as safetensors files name them. */
    public static final Set<String> TYPES = Set.of("F32", "BF16", "F16");

    /** File of a directory that {@link #deltaTo} writes. */
    public static final String DELTA = "delta.safetensors";

    private static final String HEAD = "lm_head.weight";
    private static final String EMBEDDING = "model.embed_tokens.weight";
    private static final Map<String, String> TORCH_NAMES =
            Map.of("F32", "float32", "BF16", "bfloat16", "F16", "float16");
    private static final ObjectMapper JSON = new ObjectMapper();

    /** Files that belong to a model in addition to its weights: tokenizer, prompt template, license and so on. */
    private static final List<String> COMPANIONS = List.of(
            "tokenizer.json",
            "tokenizer_config.json",
            "tokenizer.model",
            "special_tokens_map.json",
            "added_tokens.json",
            "vocab.json",
            "merges.txt",
            "chat_template.jinja",
            "chat_template.json",
            "generation_config.json",
            "LICENSE",
            "NOTICE");

    private final Weights weights;
    private final ObjectNode config;
    private final Map<String, StoredTensor> layout;
    private final List<Path> companions;
    private final Optional<String> type;

    private CheckpointExport(
            Weights weights,
            ObjectNode config,
            Map<String, StoredTensor> layout,
            List<Path> companions,
            Optional<String> type) {
        this.weights = weights;
        this.config = config;
        this.layout = layout;
        this.companions = companions;
        this.type = type;
    }

    /**
     * Exports in the weights' own type in one file, with a config made from the shape.
     *
     * @throws CheckpointException if no family's config describes the shape
     */
    public static CheckpointExport of(Weights weights) {
        Map<String, StoredTensor> layout = new LinkedHashMap<>();
        for (WholeTensor whole : CheckpointDirectory.stored(weights.shape())) {
            layout.put(
                    whole.name(),
                    new StoredTensor(
                            "model.safetensors",
                            weights.dtype().name(),
                            whole.dims(),
                            whole.elementCount() * weights.dtype().bytes()));
        }
        return new CheckpointExport(
                weights,
                HuggingFaceConfig.write(weights.shape()),
                layout,
                List.of(),
                Optional.of(weights.dtype().name()));
    }

    /**
     * Exports in the layout of another checkpoint: with its config, types, files and tokenizer files.
     *
     * @throws CheckpointException if it is of another shape, or cannot be read
     */
    public static CheckpointExport like(CheckpointDirectory begun, Weights weights) throws IOException {
        DecoderShape shape = begun.shape()
                .within(weights.shape().maxTensorElements())
                .withValueHead(weights.shape().valueHead());
        if (!shape.equals(weights.shape())) {
            throw new CheckpointException(
                    begun.path() + " is of another shape than the weights: " + shape + ", not " + weights.shape());
        }
        return new CheckpointExport(
                weights, (ObjectNode) begun.config(), begun.layout(), List.of(begun.path()), Optional.empty());
    }

    /**
     * Returns the same export with the config and tokenizer of a model whose weights are not available, in the type
     * that its config names.
     *
     * @param begun holds {@code config.json} of the same shape
     * @throws CheckpointException if it is of another shape, or cannot be read
     */
    public CheckpointExport beside(CheckpointDirectory begun) throws IOException {
        if (!begun.shape().within(weights.shape().maxTensorElements()).equals(weights.shape())) {
            throw new CheckpointException(begun.path() + " is of another shape than the weights: " + begun.shape()
                    + ", not " + weights.shape());
        }
        ObjectNode found = (ObjectNode) begun.config();
        String named = found.path("dtype").asText(found.path("torch_dtype").asText(""));
        Optional<String> its = TORCH_NAMES.entrySet().stream()
                .filter(entry -> entry.getValue().equals(named))
                .map(Map.Entry::getKey)
                .findFirst();
        return new CheckpointExport(weights, found, layout, List.of(begun.path()), its.or(() -> type));
    }

    /** Returns the same export with the tokenizer's files of a folder replacing those of the same name. */
    public CheckpointExport withCompanions(Path folder) {
        return new CheckpointExport(
                weights,
                config,
                layout,
                Stream.concat(companions.stream(), Stream.of(folder)).toList(),
                type);
    }

    /** The same in one type, one of {@link #TYPES}. */
    public CheckpointExport as(String only) {
        if (!TYPES.contains(only)) {
            throw new IllegalArgumentException("a checkpoint is written as one of " + TYPES + ": " + only);
        }
        return new CheckpointExport(weights, config, layout, companions, Optional.of(only));
    }

    public Set<String> types() {
        return tensorsByFile().values().stream()
                .flatMap(List::stream)
                .map(SafetensorsWriter.Tensor::type)
                .collect(Collectors.toUnmodifiableSet());
    }

    /** Bytes of all tensors. */
    public long bytes() {
        return tensorsByFile().values().stream()
                .flatMap(List::stream)
                .mapToLong(SafetensorsWriter.Tensor::bytes)
                .sum();
    }

    /**
     * Writes it.
     *
     * @param directory must not be there
     * @param card contents of {@code README.md}
     * @throws CheckpointException if the directory exists, or a value exceeds its type's range; nothing is left behind
     */
    public void to(Path directory, String card) throws IOException {
        NewDirectory.write(directory, partial -> {
            write(partial);
            Files.writeString(partial.resolve("README.md"), card);
        });
    }

    /** SHA-256 over the bytes of all tensors, file by file in their order, as lower-case hex. */
    public String sha256() throws IOException {
        MessageDigest digest = DigestUtils.getSha256Digest();
        for (List<SafetensorsWriter.Tensor> file : tensorsByFile().values()) {
            for (SafetensorsWriter.Tensor tensor : file) {
                tensor.each(digest::update);
            }
        }
        return HexFormat.of().formatHex(digest.digest());
    }

    /**
     * Writes a new directory with {@value #DELTA}: the elements whose bits differ from an earlier version. A
     * tensor with changes is there as {@code NAME.indices} and {@code NAME.values}, or under its own name where that takes
     * fewer bytes.
     *
     * @param directory must not be there
     * @param base of the same shape, types and files
     * @return how many elements changed; empty, and nothing is written, if the changes take as many bytes as all tensors
     */
    public OptionalLong deltaTo(Path directory, CheckpointExport base) throws IOException {
        Iterator<SafetensorsWriter.Tensor> befores =
                base.tensorsByFile().values().stream().flatMap(List::stream).iterator();
        List<SafetensorsWriter.Entry> entries = new ArrayList<>();
        long changed = 0;
        for (List<SafetensorsWriter.Tensor> file : tensorsByFile().values()) {
            for (SafetensorsWriter.Tensor now : file) {
                SafetensorsWriter.Tensor before = befores.next();
                long count = SafetensorsWriter.Changes.count(before, now);
                changed += count;
                if (SafetensorsWriter.Changes.bytes(now, count) >= now.bytes()) {
                    entries.add(now);
                } else if (count > 0) {
                    entries.add(new SafetensorsWriter.Changes(before, now, count, true));
                    entries.add(new SafetensorsWriter.Changes(before, now, count, false));
                }
            }
        }
        if (entries.stream().mapToLong(SafetensorsWriter.Entry::bytes).sum() >= bytes()) {
            return OptionalLong.empty();
        }
        NewDirectory.write(directory, partial -> SafetensorsWriter.write(partial.resolve(DELTA), entries));
        return OptionalLong.of(changed);
    }

    private void write(Path into) throws IOException {
        Map<String, List<SafetensorsWriter.Tensor>> files = tensorsByFile();
        for (Map.Entry<String, List<SafetensorsWriter.Tensor>> file : files.entrySet()) {
            SafetensorsWriter.write(into.resolve(file.getKey()), file.getValue());
        }
        if (files.size() > 1) {
            Files.writeString(into.resolve("model.safetensors.index.json"), index(files));
        }
        type.ifPresent(only -> {
            String key = config.has("dtype") ? "dtype" : "torch_dtype";
            config.put(key, TORCH_NAMES.get(only));
        });
        Files.writeString(into.resolve("config.json"), config.toPrettyString() + "\n");
        for (Path folder : companions) {
            for (String name : COMPANIONS) {
                Path file = folder.resolve(name);
                if (Files.isRegularFile(file)) {
                    Files.copy(file, into.resolve(name), StandardCopyOption.REPLACE_EXISTING);
                }
            }
        }
    }

    /** Leaves out tensors derived from the config; repeats a tied head if the original did. */
    private Map<String, List<SafetensorsWriter.Tensor>> tensorsByFile() {
        Map<String, WholeTensor> wholes =
                weights.shape().wholes().stream().collect(Collectors.toMap(WholeTensor::name, whole -> whole));
        Map<String, List<SafetensorsWriter.Tensor>> files = new TreeMap<>();
        layout.forEach((name, stored) -> {
            String source = name.equals(HEAD) && weights.shape().tiedHead() ? EMBEDDING : name;
            WholeTensor whole = wholes.get(source);
            if (whole != null) {
                files.computeIfAbsent(stored.file(), absent -> new ArrayList<>())
                        .add(SafetensorsWriter.Tensor.of(whole, name, type.orElse(stored.type()), weights.tensors()));
            }
        });
        return files;
    }

    private static String index(Map<String, List<SafetensorsWriter.Tensor>> files) {
        ObjectNode index = JSON.createObjectNode();
        long total = 0;
        Map<String, String> fileOf = new TreeMap<>();
        for (Map.Entry<String, List<SafetensorsWriter.Tensor>> file : files.entrySet()) {
            for (SafetensorsWriter.Tensor tensor : file.getValue()) {
                total += tensor.bytes();
                fileOf.put(tensor.name(), file.getKey());
            }
        }
        index.putObject("metadata").put("total_size", total);
        fileOf.forEach(index.putObject("weight_map")::put);
        return index.toPrettyString() + "\n";
    }
}
