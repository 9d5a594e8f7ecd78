package dev.millrace.policy.huggingface;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.policy.decoder.LoraShape;
import dev.millrace.policy.weights.LoraAdapter;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/**
 * Writes an adapter in PEFT's layout to a new directory: {@code adapter_config.json} and
 * {@code adapter_model.safetensors}, in the type that the adapter's values are, bit for bit. Used once.
 */
public final class AdapterExport {
    /** How PEFT names the model that it wraps, before the names of that model's own tensors. */
    private static final String PREFIX = "base_model.model.";

    private static final ObjectMapper JSON = new ObjectMapper();

    private final LoraAdapter adapter;
    private final String base;

    /** @param base name or path of the adapter's base model */
    public AdapterExport(LoraAdapter adapter, String base) {
        this.adapter = adapter;
        this.base = base;
    }

    /** Returns the type of all written tensors, as safetensors files name it. */
    public String type() {
        return adapter.parameters().dtype().name();
    }

    /** Bytes of all tensors. */
    public long bytes() {
        return tensors().stream().mapToLong(SafetensorsWriter.Tensor::bytes).sum();
    }

    /**
     * Writes it.
     *
     * @param directory must not be there
     * @param card contents of {@code README.md}
     * @throws CheckpointException if the directory exists
     */
    public void to(Path directory, String card) throws IOException {
        NewDirectory.write(directory, partial -> {
            SafetensorsWriter.write(partial.resolve("adapter_model.safetensors"), tensors());
            Files.writeString(partial.resolve("adapter_config.json"), config().toPrettyString() + "\n");
            Files.writeString(partial.resolve("README.md"), card);
        });
    }

    private List<SafetensorsWriter.Tensor> tensors() {
        return adapter.parameters().specs().stream()
                .map(spec -> new SafetensorsWriter.Tensor(
                        PREFIX + spec.name(),
                        spec.dims(),
                        type(),
                        List.of(adapter.parameters().tensor(spec.name()))))
                .toList();
    }

    private ObjectNode config() {
        LoraShape shape = adapter.shape();
        ObjectNode config = JSON.createObjectNode();
        config.put("peft_type", "LORA");
        config.put("task_type", "CAUSAL_LM");
        config.put("base_model_name_or_path", base);
        config.put("inference_mode", true);
        config.put("r", shape.rank());
        if (shape.alpha() == Math.rint(shape.alpha())) {
            config.put("lora_alpha", (long) shape.alpha());
        } else {
            config.put("lora_alpha", shape.alpha());
        }
        config.put("lora_dropout", 0.0);
        shape.targetModules().forEach(config.putArray("target_modules")::add);
        config.put("bias", "none");
        config.put("fan_in_fan_out", false);
        config.put("init_lora_weights", true);
        config.put("use_rslora", false);
        config.put("use_dora", false);
        config.putNull("modules_to_save");
        return config;
    }
}
