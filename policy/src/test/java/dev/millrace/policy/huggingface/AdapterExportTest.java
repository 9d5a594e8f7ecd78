package dev.millrace.policy.huggingface;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.millrace.policy.decoder.LoraShape;
import dev.millrace.policy.decoder.Shapes;
import dev.millrace.policy.decoder.TensorSpec;
import dev.millrace.policy.weights.Dtype;
import dev.millrace.policy.weights.FrozenWeights;
import dev.millrace.policy.weights.LoraAdapter;
import dev.millrace.policy.weights.Weights;
import java.io.IOException;
import java.nio.FloatBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class AdapterExportTest {
    private static final LoraShape LORA = new LoraShape(2, 3, List.of("q_proj", "down_proj"));

    @TempDir
    Path directory;

    @ParameterizedTest
    @EnumSource(Dtype.class)
    void shouldWriteWhatPeftReadsBitForBit(Dtype dtype) throws IOException {
        FrozenWeights base = new FrozenWeights(
                Weights.random(Shapes.GROUPED_UNTIED_BIASED, 1).as(dtype), "hash");
        LoraAdapter adapter = LoraAdapter.initial(LORA, base, 4);
        adapter.parameters()
                .tensor("model.layers.1.mlp.down_proj.lora_B.weight")
                .put(3, -0.25f);
        Path to = directory.resolve("adapter");

        AdapterExport export = new AdapterExport(adapter, "org/base");
        export.to(to, "card\n");

        JsonNode config =
                new ObjectMapper().readTree(to.resolve("adapter_config.json").toFile());
        assertThat(config.path("peft_type").asText()).isEqualTo("LORA");
        assertThat(config.path("task_type").asText()).isEqualTo("CAUSAL_LM");
        assertThat(config.path("base_model_name_or_path").asText()).isEqualTo("org/base");
        assertThat(config.path("r").asInt()).isEqualTo(2);
        assertThat(config.path("lora_alpha").toString()).isEqualTo("3");
        assertThat(config.path("target_modules").toString()).isEqualTo("[\"q_proj\",\"down_proj\"]");
        assertThat(config.path("lora_dropout").asDouble()).isZero();
        assertThat(config.path("use_rslora").asBoolean()).isFalse();
        assertThat(to.resolve("README.md")).hasContent("card\n");
        try (SafetensorsFile file = SafetensorsFile.open(to.resolve("adapter_model.safetensors"))) {
            assertThat(file.names())
                    .hasSize(2 * 2 * 2)
                    .contains(
                            "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight",
                            "base_model.model.model.layers.1.mlp.down_proj.lora_B.weight");
            for (TensorSpec spec : adapter.parameters().specs()) {
                FloatBuffer read = FloatBuffer.allocate(spec.elementCount());
                String name = "base_model.model." + spec.name();
                file.require(name, spec.dims());
                file.read(name, 0, spec.elementCount(), read);
                assertThat(read.flip())
                        .as(spec.name())
                        .isEqualTo(adapter.parameters().tensor(spec.name()));
            }
        }
        assertThat(export.type()).isEqualTo(dtype.name());
        assertThat(export.bytes()).isEqualTo(LORA.parameterCount(base.shape()) * dtype.bytes());
        assertThatThrownBy(() -> export.to(to, "again")).hasMessageContaining("exists and is not overwritten");
        assertThat(directory).isDirectoryNotContaining("glob:**.partial-*");
        assertThatThrownBy(() -> new CheckpointDirectory(to).shape())
                .hasMessageContaining("holds an adapter (adapter_config.json) and no model");
        assertThat(Files.exists(to.resolve("config.json"))).isFalse();
    }
}
