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
 * expression ends; the first that does counts. Any other key that changes the computation is refused.
 */
public final class AdapterDirectory {
    static final String CONFIG = "adapter_config.json";
    private static final String TENSORS = "adapter_model.safetensors";
    private static final String PREFIX = "base_model.model.";
    private static final String A = ".lora_A.weight";
    private static final String B = ".lora_B.weight";

    /** Keys that are read here, or do not affect the merged model. */
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

    private static final String START = "init_lora_weights";

    /** Initial values that do not change the base; others, such as pissa, move a part of it into the adapter. */
    private static final Set<String> PLAIN_STARTS = Set.of("", "true", "false", "gaussian", "eva", "orthogonal");

    private final Path directory;
    private final ConfigReader config;

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
        config = new ConfigReader(
                path.toString(),
                CheckpointDirectory.json(path, CheckpointDirectory.MOST_CONFIG_BYTES, "description of an adapter"));
        if (!config.text("peft_type", "").equals("LORA")) {
            throw config.refusal("peft_type", "must be LORA, which alone can be merged");
        }
        if (config.at(START).isContainerNode()
                || !PLAIN_STARTS.contains(config.at(START).asText(""))) {
            throw config.refusal(
                    START,
                    "changes the base as well; convert the adapter to plain LoRA when it is saved"
                            + " (PEFT: path_initial_model_for_weight_conversion)");
        }
        for (String key : config.keys()) {
            if (!KNOWN.contains(key)
                    && config.isSet(key)
                    && !config.at(key).asText().equals("none")) {
                throw config.refusal(
                        key,
                        "is not supported; merge the adapter with PEFT (merge_and_unload) and give the folder of the result");
            }
        }
    }

    /** Returns the base model's name or path, empty if the description has none. */
    public String base() {
        return config.text("base_model_name_or_path", "");
    }

    /**
     * Adds the adapter to its base in place, in float32 and in the order of {@link LoraAdapter}: an adapter that a run
     * exported gives that run's merged weights bit for bit.
     *
     * @return number of layers that were changed
     * @throws CheckpointException if a tensor is not in the base, or has a wrong shape or rank; the weights may then be
     * partly changed
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
            requireAllTargets(adapted);
            for (WholeTensor whole : adapted) {
                merge(file, whole, weights);
            }
            return adapted.size();
        }
    }

    /** Otherwise a file with missing tensors would be merged in part. */
    private void requireAllTargets(List<WholeTensor> adapted) {
        JsonNode targets = config.at("target_modules");
        for (JsonNode target : targets.isArray() ? targets : List.<JsonNode>of()) {
            String name = "." + target.asText() + ".weight";
            if (adapted.stream().noneMatch(whole -> ("." + whole.name()).endsWith(name))) {
                throw config.refusal("target_modules", target + " has no tensors in " + TENSORS);
            }
        }
        if (adapted.isEmpty()) {
            throw new CheckpointException(directory.resolve(TENSORS) + " has no tensors");
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
        if (!(alpha > 0)) {
            throw config.refusal("lora_alpha", "must be above 0, and is " + alpha + " for " + module);
        }
        float scale = (float) (alpha / (config.flag("use_rslora") ? Math.sqrt(rank) : rank));
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
        ConfigReader own = config.object(patterns);
        for (String pattern : own.keys()) {
            try {
                if (Pattern.matches("(?:.*\\.)?(?:" + pattern + ")", module)) {
                    return own.number(pattern);
                }
            } catch (PatternSyntaxException e) {
                throw new CheckpointException(
                        directory.resolve(CONFIG) + ": " + patterns + ": " + pattern + " is not a regular expression",
                        e);
            }
        }
        return config.number(key);
    }
}
