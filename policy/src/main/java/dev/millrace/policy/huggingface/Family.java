package dev.millrace.policy.huggingface;

import java.util.Arrays;
import java.util.Optional;

/** The model families whose {@code config.json} is understood; SmolLM and its second edition are Llamas by their files. */
enum Family {
    LLAMA("llama", "LlamaForCausalLM"),
    MISTRAL("mistral", "MistralForCausalLM"),
    QWEN2("qwen2", "Qwen2ForCausalLM"),
    QWEN3("qwen3", "Qwen3ForCausalLM"),
    QWEN3_MOE("qwen3_moe", "Qwen3MoeForCausalLM");

    private final String modelType;
    private final String architecture;

    Family(String modelType, String architecture) {
        this.modelType = modelType;
        this.architecture = architecture;
    }

    /** {@code model_type}. */
    String modelType() {
        return modelType;
    }

    /** The one of {@code architectures} that has the head of a language model. */
    String architecture() {
        return architecture;
    }

    static Optional<Family> of(String modelType) {
        return Arrays.stream(values())
                .filter(family -> family.modelType.equals(modelType))
                .findFirst();
    }
}
