package dev.millrace.policy.huggingface;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.DecoderTraits;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;

/**
 * A model family of Hugging Face's: what its {@code config.json} may say, and what it leaves unsaid. SmolLM and its second edition
 * are Llamas by their files.
 *
 * @param modelType {@code model_type}
 * @param architecture the {@code architectures} entry with a language model head
 * @param keyHeadsDefault whether {@code num_key_value_heads} may be left out, for as many as query heads; the other families' readers
 *     would take some number of their own
 * @param headSizeRequired whether {@code head_dim} must be there
 * @param qkvBias whether queries, keys and values have biases without a key
 * @param attentionBias whether {@code attention_bias} may be true: biases of all four projections
 * @param mlpBias whether {@code mlp_bias} may be true
 * @param queryKeyNorm whether queries and keys are normed
 * @param experts whether every layer is a mixture of experts
 * @param window which layers have a sliding window
 */
record Family(
        String modelType,
        String architecture,
        boolean keyHeadsDefault,
        boolean headSizeRequired,
        boolean qkvBias,
        boolean attentionBias,
        boolean mlpBias,
        boolean queryKeyNorm,
        boolean experts,
        Window window) {
    /** Which layers have a sliding window, and by which keys. */
    enum Window {
        /** None; {@code sliding_window} must be left out. */
        NONE,
        /** None; {@code sliding_window} says nothing while {@code use_sliding_window} is false, as it must be. */
        OFF,
        /** All of them, by {@code sliding_window}, unless that is null. */
        ALL,
        /** Those from {@code max_window_layers} on, if {@code use_sliding_window}. */
        UPPER
    }

    /** A shape that several describe is written as the first of them. */
    static final List<Family> ALL = List.of(
            new Family("llama", "LlamaForCausalLM", true, false, false, true, true, false, false, Window.NONE),
            new Family("mistral", "MistralForCausalLM", false, false, false, false, false, false, false, Window.ALL),
            new Family("qwen2", "Qwen2ForCausalLM", false, false, true, false, false, false, false, Window.UPPER),
            new Family("qwen3", "Qwen3ForCausalLM", false, true, false, true, false, true, false, Window.UPPER),
            new Family("qwen3_moe", "Qwen3MoeForCausalLM", false, false, false, true, false, true, true, Window.OFF));

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

    /** Their names in words: a, b or c. */
    static String names() {
        return ALL.stream()
                .map(Family::modelType)
                .collect(Collectors.joining(", "))
                .replaceFirst(", (?=[^,]*$)", " or ");
    }

    private boolean describes(DecoderShape shape) {
        DecoderTraits traits = shape.traits();
        boolean biases = attentionBias
                ? shape.qkvBias() == traits.outputBias()
                : shape.qkvBias() == qkvBias && !traits.outputBias();
        boolean windows = switch (window) {
            case NONE, OFF -> traits.slidingWindow() == 0;
            case ALL -> traits.fullLayers() == 0;
            case UPPER -> true;
        };
        return biases
                && windows
                && (mlpBias || !traits.mlpBias())
                && queryKeyNorm == traits.queryKeyNorm()
                && experts == traits.experts().present();
    }
}
