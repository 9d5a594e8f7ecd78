package dev.millrace.policy.huggingface;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.policy.decoder.DecoderShape;
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
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class AdapterDirectoryTest {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final DecoderShape SHAPE = Shapes.GROUPED_UNTIED_BIASED;
    private static final String Q = "model.layers.0.self_attn.q_proj";
    private static final String DOWN = "model.layers.1.mlp.down_proj";

    @TempDir
    Path directory;

    private final Random random = new Random(5);
    private final Map<String, float[]> written = new TreeMap<>();

    @Test
    void shouldMergeWhatARunExportedBitForBit() throws IOException {
        FrozenWeights base = new FrozenWeights(Weights.random(SHAPE, 1).as(Dtype.F32), "hash");
        LoraAdapter adapter = LoraAdapter.initial(new LoraShape(2, 3, List.of("q_proj", "down_proj")), base, 4);
        FloatBuffer b = adapter.parameters().tensor(LoraShape.b(DOWN + ".weight"));
        for (int i = 0; i < b.capacity(); i += 3) {
            b.put(i, (float) random.nextGaussian());
        }
        new AdapterExport(adapter, "base").to(directory.resolve("adapter"), "card");
        Weights expected = Weights.random(SHAPE, 1);
        adapter.mergeInto(expected.tensors());

        Weights merged = Weights.random(SHAPE, 1);
        assertThat(new AdapterDirectory(directory.resolve("adapter")).mergeInto(merged))
                .isEqualTo(4);

        for (TensorSpec spec : SHAPE.tensors()) {
            assertThat(merged.tensor(spec.name())).as(spec.name()).isEqualTo(expected.tensor(spec.name()));
        }
    }

    /** The scales are PEFT's: alpha over r, or over its root; the first pattern that the module's name ends with counts. */
    @ParameterizedTest
    @CsvSource({
        "false, '{}', '{}', 2, 2, 8, 8",
        "true, '{}', '{}', 2, 2, 11.313708498984761, 11.313708498984761",
        "false, '{\"q_proj\": 4}', '{}', 4, 2, 4, 8",
        "true, '{\"layers.1.*down_proj\": 1, \"down_proj\": 3}', '{\"self_attn.q_proj\": 6}', 2, 1, 4.242640687119285, 16",
        "false, '{}', '{\"_proj\": 5, \"model.layers.0.self_attn.q_proj\": 2, \"q_proj\": 9}', 2, 2, 1, 8",
    })
    void shouldScaleAsPeftDoes(
            boolean rslora,
            String ranks,
            String alphas,
            int rankOfQ,
            int rankOfDown,
            double scaleOfQ,
            double scaleOfDown)
            throws IOException {
        ObjectNode config = config();
        config.put("use_rslora", rslora);
        config.set("rank_pattern", JSON.readTree(ranks));
        config.set("alpha_pattern", JSON.readTree(alphas));
        save(config, half(Q, rankOfQ), half(DOWN, rankOfDown));
        Weights before = Weights.random(SHAPE, 1);
        Weights merged = Weights.random(SHAPE, 1);

        assertThat(new AdapterDirectory(directory).mergeInto(merged)).isEqualTo(2);

        requireMerged(before, merged, Q, rankOfQ, scaleOfQ);
        requireMerged(before, merged, DOWN, rankOfDown, scaleOfDown);
        assertThat(merged.tensor("model.layers.1.self_attn.q_proj.weight"))
                .isEqualTo(before.tensor("model.layers.1.self_attn.q_proj.weight"));
    }

    private void requireMerged(Weights before, Weights merged, String module, int rank, double scale) {
        float[] a = written.get(module + ".lora_A.weight");
        float[] b = written.get(module + ".lora_B.weight");
        FloatBuffer old = before.tensor(module + ".weight");
        FloatBuffer now = merged.tensor(module + ".weight");
        int in = a.length / rank;
        for (int o = 0; o < b.length / rank; o++) {
            for (int i = 0; i < in; i++) {
                double sum = 0;
                for (int k = 0; k < rank; k++) {
                    sum += (double) b[o * rank + k] * a[k * in + i];
                }
                assertThat((double) now.get(o * in + i)).isCloseTo(old.get(o * in + i) + scale * sum, within(1e-4));
            }
        }
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '\0',
            value = {
                "modules_to_save | [\"lm_head\"] | modules_to_save=[\"lm_head\"]: is not supported",
                "use_dora | true | use_dora=true: is not supported",
                "bias | \"all\" | bias=\"all\": is not",
                "fan_in_fan_out | true | fan_in_fan_out=true",
                "trainable_token_indices | [1] | trainable_token_indices=[1]",
                "something_new | 3 | something_new=3",
                "init_lora_weights | \"pissa_niter_4\" | init_lora_weights=\"pissa_niter_4\": changes the base",
                "peft_type | \"IA3\" | peft_type=\"IA3\": must be LORA",
                "r | 3 | lora_A.weight",
                "r | 0 | r must be a whole number of at least 1 for model.layers.0.self_attn.q_proj: 0.0",
                "r | 2.5 | r must be a whole number of at least 1",
                "r | 1e300 | must be a whole number of at least 1",
                "r | 2000000000 | lora_A.weight",
                "lora_alpha | 1e300 | makes model.layers.0.self_attn.q_proj.weight infinite",
                "lora_alpha | \"x\" | lora_alpha=\"x\": must be a number",
                "lora_alpha | 0 | lora_alpha=0: must be above 0",
                "use_rslora | \"yes\" | use_rslora=\"yes\": must be true or false",
                "target_modules | [\"q_proj\", \"v_proj\"] | \"v_proj\" has no tensors in adapter_model.safetensors",
                "rank_pattern | {\"(\": 1} | rank_pattern: ( is not a regular expression",
            })
    void shouldRefuseByName(String key, String value, String says) throws IOException {
        ObjectNode config = config();
        config.set(key, JSON.readTree(value));
        save(config, half(Q, 2));
        assertThatThrownBy(() -> new AdapterDirectory(directory).mergeInto(Weights.random(SHAPE, 1)))
                .isInstanceOf(CheckpointException.class)
                .hasMessageContaining(says);
    }

    @Test
    void shouldRefuseTensorsWithoutAPlace() throws IOException {
        save(config(), half("model.layers.7.self_attn.q_proj", 2));
        refused("model.layers.7.self_attn.q_proj.lora_A.weight is no A or B of a linear layer");
        List<SafetensorsWriter.Tensor> embedding = List.of(tensor("model.embed_tokens.lora_embedding_A", 2, 3));
        save(config(), embedding);
        refused("lora_embedding_A is no A or B");
        save(config(), half(Q, 2).subList(0, 1));
        refused("has no other half");
        Files.delete(directory.resolve("adapter_model.safetensors"));
        Files.createFile(directory.resolve("adapter_model.bin"));
        refused("adapter_model.bin, which is not read; save it with safe_serialization=True");
    }

    private void refused(String says) {
        assertThatThrownBy(() -> new AdapterDirectory(directory).mergeInto(Weights.random(SHAPE, 1)))
                .isInstanceOf(CheckpointException.class)
                .hasMessageContaining(says);
    }

    private static ObjectNode config() {
        return JSON.createObjectNode()
                .put("peft_type", "LORA")
                .put("r", 2)
                .put("lora_alpha", 16)
                .put("bias", "none")
                .put("use_dora", false)
                .putNull("modules_to_save");
    }

    private List<SafetensorsWriter.Tensor> half(String module, int rank) {
        TensorSpec weight = SHAPE.tensors().stream()
                .filter(spec -> spec.name().endsWith(module.substring(module.lastIndexOf('.')) + ".weight"))
                .findFirst()
                .orElseThrow();
        return List.of(
                tensor(module + ".lora_A.weight", rank, weight.dims().get(1)),
                tensor(module + ".lora_B.weight", weight.dims().get(0), rank));
    }

    private SafetensorsWriter.Tensor tensor(String name, long rows, long columns) {
        float[] values = new float[Math.toIntExact(rows * columns)];
        for (int i = 0; i < values.length; i++) {
            values[i] = (float) random.nextGaussian();
        }
        written.put(name, values);
        return new SafetensorsWriter.Tensor(
                "base_model.model." + name, List.of(rows, columns), "F32", List.of(FloatBuffer.wrap(values)));
    }

    @SafeVarargs
    private void save(ObjectNode config, List<SafetensorsWriter.Tensor>... tensors) throws IOException {
        Files.writeString(directory.resolve("adapter_config.json"), config.toString());
        List<SafetensorsWriter.Tensor> all = new ArrayList<>();
        for (List<SafetensorsWriter.Tensor> each : tensors) {
            all.addAll(each);
        }
        Files.deleteIfExists(directory.resolve("adapter_model.safetensors"));
        SafetensorsWriter.write(directory.resolve("adapter_model.safetensors"), all);
    }
}
