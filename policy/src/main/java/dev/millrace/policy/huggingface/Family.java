package dev.millrace.policy.huggingface;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.DecoderTraits;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;

/**
 * A model family of Hugging Face: allowed and implied keys of its {@code config.json}. To add a model family, add it to {@link
 * #ALL}. SmolLM and SmolLM2 have Llama files.
 *
 * @param modelType {@code model_type}
 * @param architecture the {@code architectures} entry with a language model head
 */
record Family(String modelType, String architecture, Window window, Set<Trait> traits) {
    enum Trait {
        /** {@code num_key_value_heads} may be left out, for as many as query heads; other readers would take their own number. */
        KEY_HEADS_DEFAULT,
        HEAD_SIZE_REQUIRED,
        /** Queries, keys and values have biases without a key. */
        QKV_BIAS,
        /** {@code attention_bias} may be true: biases of all four projections. */
        ATTENTION_BIAS,
        /** {@code mlp_bias} may be true. */
        MLP_BIAS,
        QUERY_KEY_NORM,
        /** Every layer is a mixture of experts. */
        EXPERTS
    }

    /** The layers with a sliding window, and the keys that name them. */
    enum Window {
        /** None; {@code sliding_window} must be left out. */
        NONE,
        /** None; {@code sliding_window} has no effect while {@code use_sliding_window} is false, which is required. */
        OFF,
        /** All of them, by {@code sliding_window}, unless that is null. */
        ALL,
        /** Those from {@code max_window_layers} on, if {@code use_sliding_window}. */
        UPPER
    }

    /** A shape that several families describe is written as the first of them. */
    static final List<Family> ALL = List.of(
            new Family(
                    "llama",
                    "LlamaForCausalLM",
                    Window.NONE,
                    Set.of(Trait.KEY_HEADS_DEFAULT, Trait.ATTENTION_BIAS, Trait.MLP_BIAS)),
            new Family("mistral", "MistralForCausalLM", Window.ALL, Set.of()),
            new Family("qwen2", "Qwen2ForCausalLM", Window.UPPER, Set.of(Trait.QKV_BIAS)),
            new Family(
                    "qwen3",
                    "Qwen3ForCausalLM",
                    Window.UPPER,
                    Set.of(Trait.HEAD_SIZE_REQUIRED, Trait.ATTENTION_BIAS, Trait.QUERY_KEY_NORM)),
            new Family(
                    "qwen3_moe",
                    "Qwen3MoeForCausalLM",
                    Window.OFF,
                    Set.of(Trait.ATTENTION_BIAS, Trait.QUERY_KEY_NORM, Trait.EXPERTS)));

    boolean has(Trait trait) {
        return traits.contains(trait);
    }

    static Optional<Family> of(String modelType) {
        return ALL.stream().filter(family -> family.modelType.equals(modelType)).findFirst();
    }

    /**
     * The family whose config has all that a shape has.
     *
     * @throws CheckpointException if there is none
     */
    static Family of(DecoderShape shape) {
        return ALL.stream()
                .filter(family -> family.describes(shape))
                .findFirst()
                .orElseThrow(() -> new CheckpointException(
                        "no family of Hugging Face's has a decoder of this shape, so it has no config.json: " + shape));
    }

    static String names() {
        return ALL.stream()
                .map(Family::modelType)
                .collect(Collectors.joining(", "))
                .replaceFirst(", (?=[^,]*$)", " or ");
    }

    private boolean describes(DecoderShape shape) {
        DecoderTraits its = shape.traits();
        boolean biases = has(Trait.ATTENTION_BIAS)
                ? shape.qkvBias() == its.outputBias()
                : shape.qkvBias() == has(Trait.QKV_BIAS) && !its.outputBias();
        boolean windows = switch (window) {
            case NONE, OFF -> its.slidingWindow() == 0;
            case ALL -> its.fullLayers() == 0;
            case UPPER -> true;
        };
        return biases
                && windows
                && (has(Trait.MLP_BIAS) || !its.mlpBias())
                && has(Trait.QUERY_KEY_NORM) == its.queryKeyNorm()
                && has(Trait.EXPERTS) == its.experts().present();
    }
}
