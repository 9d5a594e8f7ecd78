package dev.millrace.policy.huggingface;

import com.fasterxml.jackson.databind.JsonNode;
import dev.millrace.policy.decoder.TensorSpec;
import dev.millrace.policy.decoder.WholeTensor;
import dev.millrace.policy.weights.LoraAdapter;
import dev.millrace.policy.weights.Weights;
import java.io.IOException;
import java.nio.FloatBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.regex.Pattern;
import java.util.regex.PatternSyntaxException;

/**
 * A LoRA adapter on disk in PEFT's layout: {@code adapter_config.json} and {@code adapter_model.safetensors}.
 *
 * <p>A layer W becomes {@code W + s (B A)} with {@code s = alpha / r}, or {@code alpha / sqrt(r)} with {@code use_rslora}
 * (Kalajdzievski, 2023). As in PEFT, {@code rank_pattern} and {@code alpha_pattern} hold for the layers whose name their
 * expression ends; the first that does counts. Whatever else changes the computation is refused by its key.
 */
public final class AdapterDirectory {
    static final String CONFIG = "adapter_config.json";
    private static final String TENSORS = "adapter_model.safetensors";
    private static final String PREFIX = "base_model.model.";
    private static final String A = ".lora_A.weight";
    private static final String B = ".lora_B.weight";

    /** Keys that are read here, or say nothing about the merged model. */
    private static final Set<String> KNOWN = Set.of(
            "alpha_pattern",
            "auto_mapping",
            "base_model_name_or_path",
            "corda_config",
            "ensure_weight_tying",
            "eva_config",
            "exclude_modules",
            "inference_mode",
            "init_lora_weights",
            "layers_pattern",
            "layers_to_transform",
            "loftq_config",
            "lora_alpha",
            "lora_dropout",
            "megatron_core",
            "peft_type",
            "peft_version",
            "qalora_group_size",
            "r",
            "rank_pattern",
            "revision",
            "runtime_config",
            "target_modules",
            "task_type",
            "use_rslora");

    /** Initial values that leave the base as it is; the others, such as pissa, put a part of it into the adapter. */
    private static final Set<String> PLAIN_STARTS = Set.of("", "true", "false", "gaussian", "eva", "orthogonal");

    private final Path directory;
    private final JsonNode config;

    /**
     * Reads the description.
     *
     * @throws CheckpointException if it is missing, or is not of a LoRA adapter that can be merged, naming the key
     */
    public AdapterDirectory(Path directory) throws IOException {
        this.directory = directory;
        Path path = directory.resolve(CONFIG);
        if (!Files.isRegularFile(path)) {
            throw new CheckpointException(
                    directory + " holds no " + CONFIG + "; give the folder of a LoRA adapter in PEFT's layout");
        }
        config = CheckpointDirectory.json(path, CheckpointDirectory.MOST_CONFIG_BYTES, "description of an adapter");
        String type = config.path("peft_type").asText("");
        if (!type.equals("LORA")) {
            throw new CheckpointException(path + ": peft_type is '" + type + "', and only LORA can be merged");
        }
        String start = config.path("init_lora_weights").asText("");
        if (config.path("init_lora_weights").isContainerNode() || !PLAIN_STARTS.contains(start)) {
            throw new CheckpointException(path + ": init_lora_weights is " + config.get("init_lora_weights")
                    + ", which changes the base as well; convert the adapter to plain LoRA when it is saved"
                    + " (PEFT: path_initial_model_for_weight_conversion)");
        }
        config.properties().forEach(entry -> {
            if (!KNOWN.contains(entry.getKey()) && !isNeutral(entry.getValue())) {
                throw new CheckpointException(
                        path + ": " + entry.getKey() + " is " + entry.getValue()
                                + ", which is not supported; merge the adapter with PEFT (merge_and_unload) and give the folder of the result");
            }
        });
    }

    private static boolean isNeutral(JsonNode value) {
        return value.isNull()
                || value.isBoolean() && !value.booleanValue()
                || value.isContainerNode() && value.isEmpty()
                || value.asText().equals("none");
    }

    /** Returns the base model's name or path, empty if the description has none. */
    public String base() {
        return config.path("base_model_name_or_path").asText("");
    }

    /**
     * Adds the adapter to its base in place, in float32 and in the order of {@link LoraAdapter}: an adapter that a run
     * exported gives that run's merged weights bit for bit.
     *
     * @return number of layers that were changed
     * @throws CheckpointException if a tensor has no place in the base, or not the shape or rank that it must have; the weights
     *     may be changed in part then
     */
    public int mergeInto(Weights weights) throws IOException {
        Path path = directory.resolve(TENSORS);
        if (!Files.isRegularFile(path)) {
            throw new CheckpointException(directory + " holds no " + TENSORS
                    + (Files.exists(directory.resolve("adapter_model.bin"))
                            ? " but an adapter_model.bin, which is not read; save it with safe_serialization=True"
                            : "; give the folder of a LoRA adapter in PEFT's layout"));
        }
        Map<String, WholeTensor> wholes = new TreeMap<>();
        weights.shape().wholes().forEach(whole -> wholes.put(whole.name(), whole));
        try (SafetensorsFile file = SafetensorsFile.open(path)) {
            List<WholeTensor> adapted = new ArrayList<>();
            for (String name : file.names()) {
                String module = module(name);
                WholeTensor whole = wholes.get(module + ".weight");
                if (module.isEmpty() || whole == null || whole.dims().size() != 2) {
                    throw new CheckpointException(
                            path + ": " + name + " is no A or B of a linear layer of the base model");
                }
                if (!file.names().contains(PREFIX + module + A) || !file.names().contains(PREFIX + module + B)) {
                    throw new CheckpointException(path + ": " + name + " has no other half; A and B belong together");
                }
                if (name.endsWith(A)) {
                    adapted.add(whole);
                }
            }
            if (adapted.isEmpty()) {
                throw new CheckpointException(path + " has no tensors");
            }
            for (WholeTensor whole : adapted) {
                merge(file, whole, weights);
            }
            return adapted.size();
        }
    }

    private static String module(String tensor) {
        return tensor.startsWith(PREFIX) && (tensor.endsWith(A) || tensor.endsWith(B))
                ? tensor.substring(PREFIX.length(), tensor.length() - A.length())
                : "";
    }

    private void merge(SafetensorsFile file, WholeTensor whole, Weights weights) throws IOException {
        String module = whole.name().substring(0, whole.name().length() - ".weight".length());
        long out = whole.dims().get(0);
        int in = Math.toIntExact(whole.dims().get(1));
        double given = number("rank_pattern", "r", module);
        int rank = (int) given;
        if (rank != given || rank < 1) {
            throw new CheckpointException(directory.resolve(CONFIG) + ": r must be a whole number of at least 1 for "
                    + module + ": " + given);
        }
        float[][] a = LoraAdapter.rows(read(file, PREFIX + module + A, rank, in), in);
        FloatBuffer b = read(file, PREFIX + module + B, out, rank);
        double alpha = number("alpha_pattern", "lora_alpha", module);
        float scale = (float) (alpha / (config.path("use_rslora").asBoolean() ? Math.sqrt(rank) : rank));
        float[] row = new float[in];
        float[] sum = new float[in];
        int o = 0;
        for (TensorSpec piece : whole.pieces()) {
            FloatBuffer values = weights.tensor(piece.name());
            for (int at = 0; at < piece.elementCount(); at += in) {
                values.get(at, row);
                LoraAdapter.addRow(b, o++, a, scale, row, sum);
                requireFinite(row, whole.name());
                values.put(at, row);
            }
        }
    }

    private void requireFinite(float[] row, String name) {
        for (float value : row) {
            if (!Float.isFinite(value)) {
                throw new CheckpointException(
                        directory + " makes " + name + " infinite or no number; its numbers are damaged");
            }
        }
    }

    private static FloatBuffer read(SafetensorsFile file, String name, long rows, long columns) throws IOException {
        file.require(name, List.of(rows, columns));
        FloatBuffer values = FloatBuffer.allocate(Math.toIntExact(rows * columns));
        file.read(name, 0, values.capacity(), values);
        return values.flip();
    }

    /** The value of the first pattern that a module's name ends with, or else the value of the key. */
    private double number(String patterns, String key, String module) {
        JsonNode found = config.path(key);
        for (Map.Entry<String, JsonNode> each : config.path(patterns).properties()) {
            try {
                if (Pattern.matches("(?:.*\\.)?(?:" + each.getKey() + ")", module)) {
                    found = each.getValue();
                    break;
                }
            } catch (PatternSyntaxException e) {
                throw new CheckpointException(
                        directory.resolve(CONFIG) + ": " + patterns + " has '" + each.getKey()
                                + "', which is no regular expression",
                        e);
            }
        }
        if (!found.isNumber() || !Double.isFinite(found.asDouble())) {
            throw new CheckpointException(directory.resolve(CONFIG) + ": " + key + " must be a number: " + found);
        }
        return found.asDouble();
    }
}
