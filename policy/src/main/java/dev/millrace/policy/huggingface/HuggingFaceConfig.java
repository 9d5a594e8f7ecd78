package dev.millrace.policy.huggingface;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.DecoderTraits;
import dev.millrace.policy.decoder.Experts;
import dev.millrace.policy.decoder.TensorSpec;
import dev.millrace.policy.huggingface.Family.Trait;
import dev.millrace.policy.huggingface.Family.Window;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.stream.IntStream;

/** {@code config.json} of the supported families, to and from our description. */
final class HuggingFaceConfig {
    private static final int MOST_TOKENS = 1 << 27;
    private static final int MOST_WIDTH = 1 << 20;
    private static final int MOST_LAYERS = 10_000;
    private static final String FULL = "full_attention";
    private static final String SLIDING = "sliding_attention";
    /** The default of transformers for a Mistral config without the key. */
    private static final int MISTRAL_WINDOW = 4096;

    private static final String EXPERTS = "num_experts";
    private static final String NO_EXPERTS = "mixtures of experts are supported for qwen3_moe only";
    /** Keys of unsupported features with their meaning: allowed only if they disable the feature. */
    private static final List<List<String>> FOREIGN = List.of(
            List.of(EXPERTS, NO_EXPERTS),
            List.of("num_local_experts", NO_EXPERTS),
            List.of("n_routed_experts", NO_EXPERTS),
            List.of(
                    "quantization_config",
                    "quantised weights are not supported; give the checkpoint they were made of"),
            List.of("attn_logit_softcapping", "capped attention scores are not supported"),
            List.of("final_logit_softcapping", "capped logits are not supported"),
            List.of("query_pre_attn_scalar", "attention scores of another scale are not supported"),
            List.of("attention_multiplier", "attention scores of another scale are not supported"),
            List.of("embedding_multiplier", "scaled embeddings are not supported"),
            List.of("residual_multiplier", "scaled residuals are not supported"),
            List.of("logits_scaling", "scaled logits are not supported"),
            List.of("logit_scale", "scaled logits are not supported"),
            List.of("clip_qkv", "clipped queries, keys and values are not supported"),
            List.of("use_qk_norm", "norms of queries and keys are supported for qwen3 only"),
            List.of("qk_layernorm", "norms of queries and keys are supported for qwen3 only"),
            List.of("attention_chunk_size", "attention in chunks is not supported"),
            List.of("kv_lora_rank", "latent attention is not supported"),
            List.of("q_lora_rank", "latent attention is not supported"),
            List.of("no_rope_layers", "layers without positions are not supported"),
            List.of("alibi", "positions as biases are not supported"),
            List.of("parallel_attn", "parallel layers are not supported"),
            List.of("is_encoder_decoder", "encoders are not supported"),
            List.of("add_cross_attention", "attention to an encoder is not supported"));

    /** Keys that are read, or that do not affect log-probs: notes, training, generation. */
    private static final Set<String> KNOWN = Set.of(
            ("architectures attention_bias decoder_sparse_step dtype head_dim hidden_act hidden_size intermediate_size"
                            + " layer_types max_position_embeddings max_window_layers mlp_bias mlp_only_layers model_type"
                            + " moe_intermediate_size norm_topk_prob num_attention_heads num_experts_per_tok num_hidden_layers"
                            + " num_key_value_heads partial_rotary_factor rms_norm_eps rope_parameters rope_scaling rope_theta"
                            + " sliding_window tie_word_embeddings torch_dtype use_sliding_window vocab_size"
                            + " auto_map finetuning_task id2label initializer_range is_llama_config label2id name_or_path"
                            + " pretraining_tp problem_type return_dict router_aux_loss_coef summary_type task_specific_params"
                            + " tf_legacy_loss tokenizer_class torchscript use_bfloat16 use_cache"
                            + " chunk_size_feed_forward diversity_penalty do_sample early_stopping epsilon_cutoff eta_cutoff"
                            + " length_penalty max_length max_new_tokens min_length min_p no_repeat_ngram_size"
                            + " encoder_no_repeat_ngram_size num_beam_groups num_beams num_return_sequences prefix"
                            + " remove_invalid_values repetition_penalty return_dict_in_generate temperature top_k top_p typical_p")
                    .split(" "));

    private static final Pattern NOTE = Pattern.compile(
            "_.*|transformers.*|unsloth_.*|output_(?:attentions|hidden_states|router_logits|scores)|suppress_tokens|begin_suppress_tokens"
                    + "|.*_(?:dropout|pdrop|token_id|token_ids|version)");

    private final String source;
    private final ConfigReader config;
    private final Family family;
    private final int maxTensorElements;

    private HuggingFaceConfig(String source, ConfigReader config, int maxTensorElements) {
        this.source = source;
        this.config = config;
        this.maxTensorElements = maxTensorElements;
        this.family = Family.of(config.text("model_type", ""))
                .orElseThrow(() -> config.refusal("model_type", "must be " + Family.names()));
    }

    /**
     * @param source name of the file in messages
     * @param maxTensorElements of the shape; not part of the description
     */
    static DecoderShape read(String source, JsonNode json, int maxTensorElements) {
        return new HuggingFaceConfig(source, new ConfigReader(source, json), maxTensorElements).shape();
    }

    /** Everything in it that is not supported, one sentence each; empty if {@link #read} takes it. */
    static List<String> problems(String source, JsonNode json) {
        List<String> problems = new ArrayList<>();
        try {
            HuggingFaceConfig config =
                    new HuggingFaceConfig(source, new ConfigReader(source, json), TensorSpec.MOST_ELEMENTS);
            List<Runnable> checks = new ArrayList<>(config.foreignKeys());
            checks.add(config::described);
            for (Runnable check : checks) {
                try {
                    check.run();
                } catch (CheckpointException e) {
                    problems.add(e.getMessage());
                }
            }
        } catch (CheckpointException e) {
            problems.add(e.getMessage());
        }
        return problems.stream().distinct().toList();
    }

    private DecoderShape shape() {
        foreignKeys().forEach(Runnable::run);
        return described();
    }

    private DecoderShape described() {
        int heads = config.integer("num_attention_heads", MOST_WIDTH);
        int hidden = config.integer("hidden_size", MOST_WIDTH);
        int layers = config.integer("num_hidden_layers", MOST_LAYERS);
        int maxPositions = config.integer("max_position_embeddings", MOST_TOKENS);
        RopeConfig rope = new RopeConfig(config, maxPositions, MOST_TOKENS);
        boolean allBiases = flag("attention_bias", family.has(Trait.ATTENTION_BIAS));
        try {
            int window = slidingWindow();
            int fullLayers = fullLayers(window, layers);
            requireLayerTypes(window, fullLayers, layers);
            DecoderShape shape = new DecoderShape(
                    config.integer("vocab_size", MOST_TOKENS),
                    hidden,
                    layers,
                    heads,
                    keyHeads(heads),
                    headSize(hidden, heads),
                    config.integer("intermediate_size", MOST_WIDTH),
                    maxPositions,
                    rope.theta(),
                    config.number("rms_norm_eps"),
                    config.flag("tie_word_embeddings"),
                    allBiases || family.has(Trait.QKV_BIAS),
                    new DecoderTraits(
                            rope.scaling(),
                            allBiases,
                            flag("mlp_bias", family.has(Trait.MLP_BIAS)),
                            family.has(Trait.QUERY_KEY_NORM),
                            window,
                            fullLayers,
                            experts()),
                    maxTensorElements,
                    false);
            shape.tensors(); // each must fit a buffer, and so must a row of a split tensor
            return shape;
        } catch (IllegalArgumentException | ArithmeticException e) {
            throw new CheckpointException(source + ": " + e.getMessage(), e);
        }
    }

    private List<Runnable> foreignKeys() {
        List<Runnable> checks = new ArrayList<>(List.of(this::requireArchitecture, () -> {
            if (!config.text("hidden_act", "silu").equals("silu")) {
                throw config.refusal("hidden_act", "must be silu");
            }
        }));
        FOREIGN.stream()
                .filter(key -> !(family.has(Trait.EXPERTS) && key.get(0).equals(EXPERTS)))
                .forEach(key -> checks.add(() -> refuseForeign(key.get(0), key.get(1))));
        config.keys().forEach(key -> checks.add(() -> refuseUnknown(key)));
        return checks;
    }

    private void refuseUnknown(String key) {
        if (config.isSet(key)
                && !KNOWN.contains(key)
                && !NOTE.matcher(key).matches()
                && FOREIGN.stream().noneMatch(foreign -> foreign.get(0).equals(key))) {
            throw config.refusal(
                    key, "the key is not known and may change what the model computes; take it out if it does not");
        }
    }

    private void requireArchitecture() {
        JsonNode architectures = config.at("architectures");
        boolean fits = architectures instanceof ArrayNode
                && architectures.size() == 1
                && architectures.path(0).asText().equals(family.architecture());
        if (config.has("architectures") && !fits) {
            throw config.refusal(
                    "architectures",
                    "must be [\"" + family.architecture() + "\"] for model_type=" + family.modelType());
        }
    }

    private void refuseForeign(String key, String reason) {
        JsonNode value = config.at(key);
        boolean absent = !config.has(key) || value.isBoolean() && !value.booleanValue();
        boolean factor = Set.of("embedding_multiplier", "residual_multiplier", "logits_scaling", "logit_scale")
                .contains(key);
        boolean neutral = factor
                ? value.isNumber() && value.asDouble() == 1
                : reason.equals(NO_EXPERTS) && value.isNumber() && value.asDouble() == 0;
        if (!absent && !neutral) {
            throw config.refusal(key, reason);
        }
    }

    private int keyHeads(int heads) {
        return family.has(Trait.KEY_HEADS_DEFAULT) && !config.has("num_key_value_heads")
                ? heads
                : config.integer("num_key_value_heads", MOST_WIDTH);
    }

    private int headSize(int hidden, int heads) {
        if (config.has("head_dim") || family.has(Trait.HEAD_SIZE_REQUIRED)) {
            return config.integer("head_dim", MOST_WIDTH);
        }
        if (hidden % heads != 0) {
            throw config.refusal(
                    "hidden_size", "must be a multiple of num_attention_heads=" + heads + " when there is no head_dim");
        }
        return hidden / heads;
    }

    /** A flag that not every family may set. */
    private boolean flag(String key, boolean allowed) {
        boolean set = config.flag(key);
        if (set && !allowed) {
            throw config.refusal(key, "must be false or left out for model_type=" + family.modelType());
        }
        return set;
    }

    private Experts experts() {
        if (!family.has(Trait.EXPERTS)) {
            return Experts.NONE;
        }
        String everyLayer = "must be left out or %s: a mixture of experts is supported in every layer only";
        if (config.has("decoder_sparse_step") && config.integer("decoder_sparse_step", MOST_LAYERS) != 1) {
            throw config.refusal("decoder_sparse_step", everyLayer.formatted("1"));
        }
        if (config.has("mlp_only_layers") && !config.at("mlp_only_layers").isEmpty()) {
            throw config.refusal("mlp_only_layers", everyLayer.formatted("[]"));
        }
        int count = config.integer(EXPERTS, 2, Experts.MOST);
        return new Experts(
                count,
                config.integer("num_experts_per_tok", count),
                config.integer("moe_intermediate_size", MOST_WIDTH),
                config.flag("norm_topk_prob"));
    }

    private int slidingWindow() {
        String key = "sliding_window";
        boolean isSwitchedOn =
                flag("use_sliding_window", family.window() == Window.ALL || family.window() == Window.UPPER);
        return switch (family.window()) {
            case NONE -> {
                if (config.has(key)) {
                    throw config.refusal(key, "must be left out for model_type=" + family.modelType());
                }
                yield 0;
            }
            case OFF -> 0;
            case ALL -> {
                if (config.at(key).isNull()) {
                    yield 0;
                }
                yield config.has(key) ? config.integer(key, MOST_TOKENS) : MISTRAL_WINDOW;
            }
            case UPPER -> isSwitchedOn ? config.integer(key, MOST_TOKENS) : 0;
        };
    }

    private int fullLayers(int window, int layers) {
        return window == 0 || family.window() == Window.ALL
                ? 0
                : Math.min(layers, config.integer("max_window_layers", 0, MOST_LAYERS));
    }

    /** The list in newer files must agree with the other keys. */
    private void requireLayerTypes(int window, int fullLayers, int layers) {
        if (!config.has("layer_types")) {
            return;
        }
        List<String> expected = IntStream.range(0, layers)
                .mapToObj(layer -> window > 0 && layer >= fullLayers ? SLIDING : FULL)
                .toList();
        JsonNode types = config.at("layer_types");
        for (int layer = 0; layer < layers || layer < types.size(); layer++) {
            String type = types.path(layer).asText("");
            if (layer >= layers || !type.equals(expected.get(layer))) {
                throw new CheckpointException(source + ": layer_types["
                        + layer + "]=" + types.path(layer) + ": must be "
                        + (layer >= layers ? "left out, there are " + layers + " layers" : expected.get(layer))
                        + ", by sliding_window and max_window_layers");
            }
        }
    }

    /** The config of the family that has what the shape has. */
    static ObjectNode write(DecoderShape shape) {
        DecoderTraits traits = shape.traits();
        Family family = Family.of(shape);
        ObjectNode json = new ObjectMapper().createObjectNode();
        json.putArray("architectures").add(family.architecture());
        json.put("model_type", family.modelType())
                .put("vocab_size", shape.vocabSize())
                .put("hidden_size", shape.hiddenSize())
                .put("num_hidden_layers", shape.layers())
                .put("num_attention_heads", shape.heads())
                .put("num_key_value_heads", shape.kvHeads())
                .put("head_dim", shape.headSize())
                .put("intermediate_size", shape.intermediateSize())
                .put("max_position_embeddings", shape.maxPositions())
                .put("rope_theta", shape.ropeTheta())
                .put("rms_norm_eps", shape.rmsNormEps())
                .put("tie_word_embeddings", shape.tiedHead())
                .put("hidden_act", "silu")
                .put("torch_dtype", "float32");
        RopeConfig.write(traits.ropeScaling()).ifPresent(scaling -> json.set("rope_scaling", scaling));
        if (family.has(Trait.ATTENTION_BIAS)) {
            json.put("attention_bias", traits.outputBias());
        }
        if (traits.mlpBias()) {
            json.put("mlp_bias", true);
        }
        Experts experts = traits.experts();
        if (experts.present()) {
            json.put(EXPERTS, experts.count())
                    .put("num_experts_per_tok", experts.perToken())
                    .put("moe_intermediate_size", experts.width())
                    .put("norm_topk_prob", experts.normalised())
                    .put("decoder_sparse_step", 1);
            json.putArray("mlp_only_layers");
        }
        if (family.window() == Window.ALL) {
            json.put("sliding_window", traits.slidingWindow());
        } else if (traits.slidingWindow() > 0) {
            json.put("use_sliding_window", true)
                    .put("sliding_window", traits.slidingWindow())
                    .put("max_window_layers", traits.fullLayers());
        }
        return json;
    }
}
