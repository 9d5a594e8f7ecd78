package dev.millrace.policy.huggingface;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.DecoderTraits;
import dev.millrace.policy.decoder.Experts;
import dev.millrace.policy.decoder.RopeScaling;
import dev.millrace.policy.decoder.Shapes;
import dev.millrace.policy.decoder.TensorSpec;
import dev.millrace.policy.weights.Weights;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Named;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.FieldSource;
import org.junit.jupiter.params.provider.MethodSource;

class CheckpointDirectoryTest {
    static final List<DecoderShape> SHAPES = List.of(
            Shapes.TIED,
            Shapes.GROUPED_UNTIED_BIASED,
            Shapes.ONE_KEY_HEAD,
            with(false, new DecoderTraits(new RopeScaling.Llama3(8, 1, 4, 64), false, true, false, 0, 0)),
            with(true, new DecoderTraits(new RopeScaling.Linear(3), true, true, false, 0, 0)),
            with(true, new DecoderTraits(new RopeScaling.None(), false, false, false, 7, 1)),
            with(true, new DecoderTraits(new RopeScaling.Yarn(4, 24, 9, 2, 1.25, false), true, false, true, 6, 0)),
            with(false, new DecoderTraits(new RopeScaling.None(), false, false, true, 0, 0)),
            with(false, new DecoderTraits(new RopeScaling.None(), false, false, false, 5, 0)));
    private static final String LLAMA = """
        {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "vocab_size": 6,
        "hidden_size": 4,
         "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 3, "max_position_embeddings": 8,
         "rms_norm_eps": 1e-05, "rope_scaling": null, "attention_bias": false, "tie_word_embeddings": true}
        """;

    @TempDir
    Path directory;

    private static DecoderShape with(boolean qkvBias, DecoderTraits traits) {
        return new DecoderShape(11, 16, 2, 4, 2, 6, 20, 96, 100, 1e-6, true, qkvBias).with(traits);
    }

    @ParameterizedTest
    @FieldSource("SHAPES")
    void shouldReadBackWhatItWroteBitForBit(DecoderShape shape) throws IOException {
        Weights weights = Weights.random(shape, 1);
        CheckpointDirectory checkpoint = new CheckpointDirectory(directory.resolve("new/place"));
        checkpoint.save(weights);
        Weights loaded = checkpoint.load();
        assertThat(loaded.shape()).isEqualTo(shape);
        for (TensorSpec spec : shape.tensors()) {
            assertThat(loaded.bytes(spec.name())).isEqualTo(weights.bytes(spec.name()));
        }
        assertThat(directory.resolve("new/place")).isDirectoryNotContaining("glob:**.partial");
    }

    @Test
    void shouldFillInWhatLlamaConfigsLeaveOut() throws IOException {
        config(LLAMA);
        assertThat(new CheckpointDirectory(directory).shape())
                .isEqualTo(new DecoderShape(6, 4, 1, 2, 2, 2, 3, 8, 10_000, 1e-5, true, false));
        config(LLAMA.replace(", \"tie_word_embeddings\": true", ""));
        assertThat(new CheckpointDirectory(directory).shape().tiedHead()).isFalse();
    }

    @Test
    void shouldReadQwen2ConfigsOldAndNew() throws IOException {
        String qwen = LLAMA.replace("\"llama\"", "\"qwen2\"")
                .replace("LlamaFor", "Qwen2For")
                .replace("\"attention_bias\": false", "\"num_key_value_heads\": 1, \"use_sliding_window\": false");
        config(qwen.replace("\"rope_scaling\": null", "\"rope_theta\": 1000000.0"));
        DecoderShape expected = new DecoderShape(6, 4, 1, 2, 1, 2, 3, 8, 1e6, 1e-5, true, true);
        assertThat(new CheckpointDirectory(directory).shape()).isEqualTo(expected);
        config(qwen.replace(
                "\"rope_scaling\": null",
                "\"rope_parameters\": {\"rope_theta\": 1000000.0, \"rope_type\": \"default\"}"));
        assertThat(new CheckpointDirectory(directory).shape()).isEqualTo(expected);
    }

    @Test
    void shouldRefuseByKeyAndValueWhatTheDecoderDoesNotCompute() throws IOException {
        refuses("\"llama\"", "\"gemma\"", "model_type=\"gemma\": must be llama, mistral, qwen2, qwen3 or qwen3_moe");
        refuses(
                "\"llama\"",
                "\"mixtral\"",
                "model_type=\"mixtral\": must be llama, mistral, qwen2, qwen3 or qwen3_moe");
        refuses(
                "LlamaForCausalLM",
                "LlamaForSequenceClassification",
                "architectures=[\"LlamaForSequenceClassification\"]: must be [\"LlamaForCausalLM\"] for model_type=llama");
        refuses("\"silu\"", "\"gelu\"", "hidden_act=\"gelu\": must be silu");
        refusesRope(
                "{\"rope_type\": \"dynamic\", \"factor\": 2.0}",
                "rope_scaling={\"rope_type\":\"dynamic\",\"factor\":2.0}: rotary positions of type dynamic are not supported;"
                        + " supported are default, linear, llama3 and yarn");
        refusesRope("{\"type\": \"su\"}", "rotary positions of type su are not supported");
        refusesRope(
                "{\"type\": \"longrope\", \"short_factor\": [1.0], \"long_factor\": [2.0]}",
                "rotary positions of type longrope are not supported");
        refusesRope(
                "{\"full_attention\": {\"rope_type\": \"default\"}, \"sliding_attention\": {\"rope_type\": \"default\"}}",
                "full_attention={\"rope_type\":\"default\"}: says something of a scaling that has no rope_type");
        refusesRope(
                "{\"type\": \"linear\", \"rope_type\": \"yarn\"}",
                "type=\"linear\": differs from rope_type=yarn in rope_scaling; one of them is wrong");
        refusesRope("{\"rope_type\": \"linear\"}", "rope_scaling: factor=: must be a number");
        refusesRope("{\"rope_type\": \"linear\", \"factor\": -1}", "factor must be finite and above 0: factor=-1.0");
        refusesRope(
                "{\"rope_type\": \"linear\", \"factor\": 2, \"mrope_section\": [1]}",
                "the key mrope_section is not known for rotary positions of type linear");
        refusesRope(
                "{\"rope_type\": \"llama3\", \"factor\": 8, \"low_freq_factor\": 4, \"high_freq_factor\": 1,"
                        + " \"original_max_position_embeddings\": 4}",
                "highFreqFactor must be finite and above lowFreqFactor=4.0: highFreqFactor=1.0");
        refusesRope(
                "{\"rope_type\": \"llama3\", \"factor\": 8, \"low_freq_factor\": 1, \"high_freq_factor\": 4}",
                "rope_scaling: original_max_position_embeddings=: must be a whole number from 1");
        refusesKey("partial_rotary_factor", "0.5", "positions that turn a part of a head are not supported");
        refusesKey("num_local_experts", "8", "mixtures of experts are supported for qwen3_moe only");
        refusesKey("num_experts", "64", "mixtures of experts are supported for qwen3_moe only");
        refusesKey("quantization_config", "{\"quant_method\":\"awq\"}", "quantised weights are not supported");
        refusesKey("attn_logit_softcapping", "50.0", "capped attention scores are not supported");
        refusesKey("residual_multiplier", "0.22", "scaled residuals are not supported");
        refusesKey("attention_multiplier", "1.0", "attention scores of another scale are not supported");
        refusesKey("attention_chunk_size", "8192", "attention in chunks is not supported");
        refusesKey("kv_lora_rank", "512", "latent attention is not supported");
        refusesKey("no_rope_layers", "[1]", "layers without positions are not supported");
        refusesKey("sliding_window", "4096", "must be left out for model_type=llama");
        refusesKey("use_sliding_window", "true", "must be false or left out for model_type=llama");
        String unknown = "the key is not known and may change what the model computes; take it out if it does not";
        refusesKey("rope_interleaved", "true", unknown);
        refusesKey("rope_scalling", "{\"factor\":4}", unknown);
        refusesKey("use_parallel_residual", "true", unknown);
        refusesKey("norm_offset", "1.0", unknown);
        refusesKey("output_multiplier_scale", "0.5", unknown);
        String layerTypes = "[\"sliding_attention\"]";
        refusesKey("layer_types", layerTypes, "must be full_attention, by sliding_window and max_window_layers");
    }

    /** Files of model hubs, each with its source, and with the shape they describe or the refusal they get. */
    static List<Named<JsonNode>> hubConfigs() throws IOException {
        try (InputStream json = CheckpointDirectoryTest.class.getResourceAsStream("hub-configs.json")) {
            List<Named<JsonNode>> rows = new ArrayList<>();
            new ObjectMapper()
                    .readTree(json)
                    .forEach(row -> rows.add(Named.of(row.path("model").asText(), row)));
            return rows;
        }
    }

    @ParameterizedTest
    @MethodSource("hubConfigs")
    void shouldReadOrRefuseTheConfigsOfModelHubs(JsonNode row) throws IOException {
        config(row.path("config").toString());
        CheckpointDirectory checkpoint = new CheckpointDirectory(directory);
        if (row.has("refused")) {
            assertThatThrownBy(checkpoint::shape)
                    .isInstanceOf(CheckpointException.class)
                    .hasMessageEndingWith("config.json: " + row.path("refused").asText());
        } else {
            assertThat(described(checkpoint.shape())).isEqualTo(row.path("read"));
        }
    }

    private static JsonNode described(DecoderShape shape) {
        DecoderTraits traits = shape.traits();
        Experts experts = traits.experts();
        String attention = traits.outputBias() ? "q k v o" : "q k v";
        String window =
                traits.slidingWindow() + (traits.fullLayers() == 0 ? ", all layers" : ", from " + traits.fullLayers());
        return new ObjectMapper()
                .createObjectNode()
                .put("layers", shape.layers())
                .put("heads", shape.heads())
                .put("kv_heads", shape.kvHeads())
                .put("head_dim", shape.headSize())
                .put("hidden", shape.hiddenSize())
                .put("mlp", shape.intermediateSize())
                .put("vocab", shape.vocabSize())
                .put("positions", shape.maxPositions())
                .put("rope_theta", shape.ropeTheta())
                .put("rope", traits.ropeScaling().toString())
                .put("norm_eps", shape.rmsNormEps())
                .put("tied", shape.tiedHead())
                .put("biases", (shape.qkvBias() ? attention : "none") + (traits.mlpBias() ? " mlp" : ""))
                .put("query_key_norm", traits.queryKeyNorm())
                .put("window", traits.slidingWindow() == 0 ? "none" : window)
                .put(
                        "experts",
                        experts.present()
                                ? experts.count() + ", " + experts.perToken() + " per token, width " + experts.width()
                                        + (experts.normalised() ? ", normalised" : "")
                                : "none");
    }

    @Test
    void shouldTakeNotesAndWhatOnlyTrainingAndGenerationRead() throws IOException {
        config(
                LLAMA.replace(
                        "\"rope_scaling\": null",
                        "\"_name_or_path\": \"x\", \"attention_dropout\": 0.0, \"bos_token_id\": 1, \"eos_token_id\": [1, 2],"
                                + " \"initializer_range\": 0.02, \"is_llama_config\": true, \"pad_token_id\": 2, \"pretraining_tp\": 1,"
                                + " \"rope_interleaved\": false, \"transformers.js_config\": {\"dtype\": \"q4\"},"
                                + " \"transformers_version\": \"4.40.1\", \"unsloth_fixed\": true, \"use_cache\": true,"
                                + " \"dtype\": \"bfloat16\", \"output_router_logits\": false, \"use_mrope\": false, \"top_p\": 0.9"));
        assertThat(new CheckpointDirectory(directory).shape().traits()).isEqualTo(DecoderTraits.PLAIN);
    }

    @Test
    void shouldTakeKeysOfOtherDecodersThatSayThatItIsNotSo() throws IOException {
        config(LLAMA.replace(
                "\"rope_scaling\": null",
                "\"rope_scaling\": {\"rope_type\": \"default\"}, \"num_experts\": 0, \"quantization_config\": null,"
                        + " \"residual_multiplier\": 1.0, \"sliding_window\": null, \"use_qk_norm\": false,"
                        + " \"partial_rotary_factor\": 1.0, \"layer_types\": [\"full_attention\"]"));
        assertThat(new CheckpointDirectory(directory).shape().traits()).isEqualTo(DecoderTraits.PLAIN);
    }

    @Test
    void shouldReadAMistralAsItsAuthorsDoWhereKeysAreMissing() throws IOException {
        String mistral = LLAMA.replace("Llama", "Mistral").replace("\"llama\"", "\"mistral\"");
        config(mistral);
        assertThatThrownBy(() -> new CheckpointDirectory(directory).shape())
                .hasMessageContaining("num_key_value_heads=: must be a whole number");
        mistral = mistral.replace("\"num_hidden_layers\": 1", "\"num_hidden_layers\": 1, \"num_key_value_heads\": 2");
        config(mistral);
        assertThat(new CheckpointDirectory(directory).shape().traits().slidingWindow())
                .isEqualTo(4096);
        config(mistral.replace("\"rope_scaling\": null", "\"sliding_window\": null"));
        assertThat(new CheckpointDirectory(directory).shape().traits().slidingWindow())
                .isZero();
        config(mistral.replace("\"attention_bias\": false", "\"attention_bias\": true"));
        assertThatThrownBy(() -> new CheckpointDirectory(directory).shape())
                .hasMessageEndingWith("attention_bias=true: must be false or left out for model_type=mistral");
    }

    @Test
    void shouldReadTheFilesThatTheIndexNamesAndNoOther() throws IOException {
        FamilyCheckpoint.random(FamiliesTest.MODELS.get(0).config(), "BF16", 3, 5)
                .write(directory);
        CheckpointDirectory checkpoint = new CheckpointDirectory(directory);
        file("consolidated.safetensors", "{}", ByteBuffer.allocate(0));
        checkpoint.check();
        assertThat(checkpoint.layout().values())
                .extracting(StoredTensor::file)
                .containsOnly(
                        "model-00001-of-00003.safetensors",
                        "model-00002-of-00003.safetensors",
                        "model-00003-of-00003.safetensors");
        assertThat(checkpoint.layout().get("model.norm.weight"))
                .isEqualTo(new StoredTensor("model-00003-of-00003.safetensors", "BF16", List.of(24L), 48));

        Path index = directory.resolve("model.safetensors.index.json");
        String text = Files.readString(index);
        refusesIndex(text.replace("\"model.norm.weight\"", "\"model.norm.scale\""), "such as model.norm.weight");
        refusesIndex(
                text.replace("model-00002-of-00003", "../model-00002"),
                "which is not the name of a file in" + " the same folder");
        refusesIndex(
                text.replace("model-00002-of-00003", "model-00004"),
                "names model-00004.safetensors, which is not there");
        refusesIndex("{\"metadata\": {}}", "has no weight_map that gives tensors their files");
        Files.delete(index);
        Files.createSymbolicLink(index, directory.resolve("blob"));
        assertThatThrownBy(checkpoint::load)
                .hasMessage(index + " is not a regular file or a link to one; remove it, or give the whole checkpoint");
        Files.delete(index);
        Files.writeString(index, text);
        file("model.safetensors", "{}", ByteBuffer.allocate(0));
        assertThatThrownBy(checkpoint::load)
                .hasMessageEndingWith(
                        "holds model.safetensors and model.safetensors.index.json, which does not name it; remove the one"
                                + " that is not the model");
    }

    @Test
    void shouldTakeOneFileWithAnIndexOfItsOwn() throws IOException {
        CheckpointDirectory checkpoint = new CheckpointDirectory(directory);
        checkpoint.save(Weights.random(SHAPES.get(0), 3));
        String names = checkpoint.layout().keySet().stream()
                .map(name -> "\"" + name + "\": \"model.safetensors\"")
                .collect(Collectors.joining(", "));
        Files.writeString(directory.resolve("model.safetensors.index.json"), "{\"weight_map\": {" + names + "}}");
        checkpoint.check();
        assertThat(checkpoint.layout().values()).extracting(StoredTensor::file).containsOnly("model.safetensors");
    }

    @Test
    void shouldReadTheBaseOfRotaryPositionsWhereverItIsSaid() throws IOException {
        for (String said : List.of(
                "\"rope_theta\": 500000.0",
                "\"rope_scaling\": {\"rope_type\": \"default\", \"rope_theta\": 500000.0}",
                "\"rope_scaling\": {\"rope_theta\": 500000}, \"rope_theta\": 500000.0",
                "\"rope_parameters\": {\"rope_theta\": 500000.0}")) {
            config(LLAMA.replace("\"rope_scaling\": null", said));
            assertThat(new CheckpointDirectory(directory).shape().ropeTheta())
                    .as(said)
                    .isEqualTo(500_000);
        }
        refuses(
                "\"rope_scaling\": null",
                "\"rope_scaling\": {\"rope_type\": \"default\", \"rope_theta\": 500000.0}, \"rope_theta\": 10000.0",
                "rope_theta=500000.0: differs from the 10000.0 next to it; one of them is wrong");
        refusesRope("{\"factor\": 4.0}", "factor=4.0: says something of a scaling that has no rope_type");
        refusesRope(
                "{\"rope-type\": \"yarn\"}", "rope-type=\"yarn\": says something of a scaling that has no rope_type");
    }

    @Test
    void shouldSharpenYarnByThePaperUnlessBothScalesAreSet() throws IOException {
        for (String scales :
                List.of("\"beta_fast\": 32", "\"mscale\": 0.7", "\"mscale\": 0.7, \"mscale_all_dim\": 0")) {
            config(LLAMA.replace(
                    "\"rope_scaling\": null",
                    "\"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": 8, " + scales + "}"));
            assertThat(new CheckpointDirectory(directory).shape().traits().ropeScaling())
                    .as(scales)
                    .isEqualTo(new RopeScaling.Yarn(8, 8, 32, 1, 0.1 * Math.log(8) + 1, true));
        }
    }

    private void refusesIndex(String text, String reason) throws IOException {
        Files.writeString(directory.resolve("model.safetensors.index.json"), text);
        assertThatThrownBy(new CheckpointDirectory(directory)::load)
                .isInstanceOf(CheckpointException.class)
                .hasMessageContaining(reason);
    }

    private void refusesRope(String scaling, String reason) throws IOException {
        refuses("\"rope_scaling\": null", "\"rope_scaling\": " + scaling, reason);
    }

    private void refusesKey(String key, String value, String reason) throws IOException {
        refuses("\"rope_scaling\": null", "\"" + key + "\": " + value, ": " + reason);
        refuses("\"rope_scaling\": null", "\"" + key + "\": " + value, key);
    }

    @Test
    void shouldRefuseWhatIsMissingOrNoConfig() throws IOException {
        refuses("\"vocab_size\": 6,", "", "vocab_size=: must be a whole number from 1 to 134217728");
        refuses(
                "\"hidden_size\": 4",
                "\"hidden_size\": 5",
                "hidden_size=5: must be a multiple of num_attention_heads=2");
        refuses("\"num_attention_heads\": 2", "\"num_attention_heads\": 4", "headSize must be at least 2: headSize=1");
        config("{not json");
        assertThatThrownBy(() -> new CheckpointDirectory(directory).shape())
                .hasMessageContaining("config.json is not JSON");
        assertThatThrownBy(() -> new CheckpointDirectory(directory.resolve("empty")).shape())
                .hasMessageStartingWith("there is no folder ")
                .hasMessageEndingWith("; give the folder of a model in Hugging Face's layout");
    }

    @Test
    void shouldWidenHalfAndBrainFloatsExactly() throws IOException {
        DecoderShape shape = new DecoderShape(2, 2, 1, 1, 1, 2, 1, 8, 10_000, 1e-5, true, false);
        CheckpointDirectory checkpoint = new CheckpointDirectory(directory);
        checkpoint.save(Weights.random(shape, 1));
        Files.delete(directory.resolve("model.safetensors"));
        StringBuilder header = new StringBuilder("{\"__metadata__\":{\"format\":\"pt\"}");
        ByteBuffer data = ByteBuffer.allocate(1000).order(ByteOrder.LITTLE_ENDIAN);
        for (TensorSpec spec : shape.tensors()) {
            boolean half = spec.name().equals("model.embed_tokens.weight");
            int begin = data.position();
            short[] halves = {0x3555, (short) 0x8001, 0x7bff, (short) 0xc000}; // 0.33325195, -2^-24, 65504, -2
            for (int i = 0; i < spec.elementCount(); i++) {
                data.putShort(half ? halves[i] : (short) 0x3fc0); // 1.5 in bfloat16
            }
            header.append(",\"%s\":{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":[%d,%d]}"
                    .formatted(spec.name(), half ? "F16" : "BF16", spec.dims(), begin, data.position()));
        }
        file("model-00001-of-00001.safetensors", header + "}", data.flip());

        Weights loaded = checkpoint.load();
        float[] embedding = new float[4];
        loaded.tensor("model.embed_tokens.weight").get(embedding);
        assertThat(embedding).containsExactly(0.33325195f, -0x1p-24f, 65504f, -2f);
        assertThat(loaded.tensor("model.norm.weight").get(1)).isEqualTo(1.5f);
        assertThat(SafetensorsFile.halfToFloat((short) 0x7c00)).isEqualTo(Float.POSITIVE_INFINITY);
        assertThat(SafetensorsFile.halfToFloat((short) 0xfe00)).isNaN();
        assertThat(SafetensorsFile.halfToFloat((short) 0x8000)).isEqualTo(-0f);
    }

    @Test
    void shouldReadATiedHeadStoredTwiceOnlyIfItIsTheSame() throws IOException {
        Weights weights = Weights.random(Shapes.TIED, 1);
        CheckpointDirectory checkpoint = new CheckpointDirectory(directory);
        checkpoint.save(weights);
        ByteBuffer embedding = weights.bytes("model.embed_tokens.weight");
        String header = "{\"lm_head.weight\":{\"dtype\":\"F32\",\"shape\":[11,16],\"data_offsets\":[0,704]}}";
        file("head.safetensors", header, embedding.duplicate());
        assertThat(checkpoint.load().bytes("model.embed_tokens.weight")).isEqualTo(embedding);

        ByteBuffer other =
                ByteBuffer.allocate(704).put(embedding.duplicate()).flip().putInt(100, 7);
        file("head.safetensors", header, other);
        assertThatThrownBy(checkpoint::load)
                .hasMessageEndingWith(
                        "tie_word_embeddings is true, but lm_head.weight differs from model.embed_tokens.weight");
    }

    @Test
    void shouldRefuseTensorsThatAreMissingLeftOverTwiceOrOfAnotherShape() throws IOException {
        Weights weights = Weights.random(Shapes.TIED, 1);
        CheckpointDirectory checkpoint = new CheckpointDirectory(directory);
        checkpoint.save(weights);
        String extra = "{\"%s\":{\"dtype\":\"%s\",\"shape\":[2],\"data_offsets\":[0,%d]}}";
        file(
                "extra.safetensors",
                extra.formatted("model.layers.0.self_attn.q_norm.weight", "F32", 8),
                ByteBuffer.allocate(8));
        assertThatThrownBy(checkpoint::load)
                .hasMessageEndingWith("the decoder has no place for model.layers.0.self_attn.q_norm.weight");
        file("extra.safetensors", extra.formatted("model.norm.weight", "F32", 8), ByteBuffer.allocate(8));
        assertThatThrownBy(checkpoint::load).hasMessageEndingWith("tensor model.norm.weight is in two files");

        Files.delete(directory.resolve("model.safetensors"));
        assertThatThrownBy(checkpoint::load).hasMessageEndingWith("tensor model.embed_tokens.weight is missing");
        file("extra.safetensors", extra.formatted("model.embed_tokens.weight", "F32", 8), ByteBuffer.allocate(8));
        assertThatThrownBy(checkpoint::load)
                .hasMessageEndingWith("model.embed_tokens.weight has the shape [2], the config asks for [11, 16]");
        file(
                "extra.safetensors",
                extra.formatted("model.embed_tokens.weight", "F64", 1408).replace("[2]", "[11,16]"),
                ByteBuffer.allocate(1408));
        assertThatThrownBy(checkpoint::load).hasMessageContaining("has the type F64, supported are F32, F16 and BF16");
        file(
                "extra.safetensors",
                extra.formatted("model.embed_tokens.weight", "F32", 8).replace("[2]", "[11,16]"),
                ByteBuffer.allocate(8));
        assertThatThrownBy(checkpoint::load)
                .hasMessageEndingWith(
                        "model.embed_tokens.weight lies at bytes 0 to 8, and needs 704 for F32 of the shape [11, 16]");
        Files.write(directory.resolve("extra.safetensors"), new byte[] {1, 2, 3});
        assertThatThrownBy(checkpoint::load)
                .hasMessageEndingWith(
                        "is not a safetensors file: it ends after 3 bytes, within what its header says is there");
        Files.delete(directory.resolve("extra.safetensors"));
        assertThatThrownBy(checkpoint::load).hasMessageEndingWith("holds no *.safetensors file");
    }

    @Test
    void shouldRefuseNumbersThatAreNotWhatTheyLookLike() throws IOException {
        refuses(
                "\"vocab_size\": 6",
                "\"vocab_size\": 4294967302",
                "vocab_size=4294967302: must be a whole number from 1");
        refuses("\"vocab_size\": 6", "\"vocab_size\": 6.5", "vocab_size=6.5: must be a whole number");
        refuses("\"vocab_size\": 6", "\"vocab_size\": 6.0", "vocab_size=6.0: must be a whole number");
        refuses("\"vocab_size\": 6", "\"vocab_size\": -6", "vocab_size=-6: must be a whole number");
        refuses("\"vocab_size\": 6", "\"vocab_size\": 1e300", "must be a whole number");
        refuses("\"vocab_size\": 6", "\"vocab_size\": \"6\"", "vocab_size=\"6\": must be a whole number");
        refuses("\"vocab_size\": 6", "\"vocab_size\": 6, \"vocab_size\": 7", "Duplicate field 'vocab_size'");
        refuses("\"num_attention_heads\": 2", "\"num_attention_heads\": 0", "num_attention_heads=0: must be a whole");
        refuses("\"num_attention_heads\": 2", "\"num_attention_heads\": 2, \"head_dim\": 2.5", "head_dim=2.5");
        refuses(
                "\"num_attention_heads\": 2",
                "\"num_attention_heads\": 2, \"num_key_value_heads\": 4294967298",
                "num_key_value_heads=4294967298");
        refuses("\"num_hidden_layers\": 1", "\"num_hidden_layers\": 2000000000", "from 1 to 10000");
        refuses(
                "\"hidden_size\": 4",
                "\"hidden_size\": 1000000, \"head_dim\": 1000000",
                "q_proj.weight has 2,000,000,000,000 numbers and would lie in 3,732 tensors of at most 536,870,911, and a matrix may lie in 64");
        refuses("\"rms_norm_eps\": 1e-05", "\"rms_norm_eps\": \"NaN\"", "rms_norm_eps=\"NaN\": must be a number");
        refuses("\"rms_norm_eps\": 1e-05", "\"rms_norm_eps\": 1e400", "rmsNormEps must be above 0 and below 1");
        refuses("\"tie_word_embeddings\": true", "\"tie_word_embeddings\": \"true\"", "must be true or false");
        refuses("\"rope_scaling\": null", "\"rope_scaling\": [8]", "rope_scaling=[8]: must hold keys and values");
        refuses("\"rope_scaling\": null", "\"rope_theta\": \"x\"", "rope_theta=\"x\": must be a number");
        config(LLAMA + "{}");
        assertThatThrownBy(() -> new CheckpointDirectory(directory).shape()).isInstanceOf(CheckpointException.class);
        config(" ".repeat(1 << 21));
        assertThatThrownBy(() -> new CheckpointDirectory(directory).shape())
                .hasMessageContaining("has more than 1048576 bytes");
    }

    @Test
    void shouldNameTheTensorWhoseWeightIsNotFiniteBeforeAnythingIsSampled() throws IOException {
        CheckpointDirectory checkpoint = new CheckpointDirectory(directory);
        for (float broken : new float[] {Float.NaN, Float.POSITIVE_INFINITY, Float.NEGATIVE_INFINITY}) {
            Weights weights = Weights.random(Shapes.TIED, 1);
            weights.tensor("model.norm.weight").put(3, broken);
            checkpoint.save(weights);
            String sentence = "model.norm.weight has " + broken + " as element 3 of 16, and a policy with such a weight"
                    + " samples nothing; give a checkpoint from before it diverged";
            assertThatThrownBy(checkpoint::load)
                    .isInstanceOf(CheckpointException.class)
                    .hasMessageEndingWith(sentence);
            assertThatThrownBy(checkpoint::check)
                    .isInstanceOf(CheckpointException.class)
                    .hasMessageEndingWith(sentence);
        }
        checkpoint.save(Weights.random(Shapes.TIED, 1));
        checkpoint.check();
    }

    @Test
    void shouldReserveNothingForAModelWhoseFilesAreNotThere() throws IOException {
        config(LLAMA.replace("\"num_hidden_layers\": 1", "\"num_hidden_layers\": 10000")
                .replace("\"intermediate_size\": 3", "\"intermediate_size\": 1048576"));
        file("model.safetensors", "{}", ByteBuffer.allocate(0));
        assertThatThrownBy(new CheckpointDirectory(directory)::load)
                .hasMessageEndingWith("tensor model.embed_tokens.weight is missing");
    }

    private void refuses(String key, String replacement, String reason) throws IOException {
        config(LLAMA.replace(key, replacement));
        assertThatThrownBy(() -> new CheckpointDirectory(directory).shape())
                .isInstanceOf(CheckpointException.class)
                .hasMessageContaining(reason);
    }

    private void config(String json) throws IOException {
        Files.writeString(directory.resolve("config.json"), json);
    }

    private void file(String name, String header, ByteBuffer data) throws IOException {
        byte[] json = header.getBytes(StandardCharsets.UTF_8);
        ByteBuffer bytes =
                ByteBuffer.allocate(8 + json.length + data.remaining()).order(ByteOrder.LITTLE_ENDIAN);
        Files.write(
                directory.resolve(name),
                bytes.putLong(json.length).put(json).put(data).array());
    }
}
