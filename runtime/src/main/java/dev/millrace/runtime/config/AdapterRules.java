package dev.millrace.runtime.config;

import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.corrections.stage.StageInput;
import dev.millrace.learner.step.LoraConfig;
import dev.millrace.log.run.TopicsConfig;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.weights.WeightsConfig;
import dev.millrace.weights.store.ObjectStore;

/** What does not go with training an adapter in place of the weights. */
final class AdapterRules {
    private AdapterRules() {}

    /** @throws ConfigException naming both keys, both values and a way out */
    static void require(
            DecoderShape shape,
            LoraConfig lora,
            ModelConfig model,
            Algorithm algorithm,
            WeightsConfig weights,
            TopicsConfig topics) {
        if (model.checkpoint().isEmpty()) {
            throw new ConfigException(
                    "learner.lora.rank is " + lora.rank()
                            + " and model.checkpoint is empty: random weights with a few trained directions stay random, so"
                            + " give a pretrained checkpoint, --model DIR, or train the weights themselves, learner.lora.rank=0");
        }
        MillraceConfig.refuseWith(
                "learner.lora", () -> lora.shape().orElseThrow().tensors(shape));
        if (algorithm.advantage().optionalInputs().contains(StageInput.GRADIENT_NORMS)) {
            throw new ConfigException("learner.lora.rank is " + lora.rank()
                    + " and algorithm.advantage.kind is opob, whose norms are those of the gradient by all weights; choose"
                    + " another advantage, or train the weights themselves, learner.lora.rank=0");
        }
        if (topics.weightsRetentionBytes() > 0
                && ObjectStore.of(weights.store()).isEmpty()) {
            throw new ConfigException("topics.weights_retention_bytes is " + topics.weightsRetentionBytes()
                    + " and learner.lora.rank is " + lora.rank()
                    + ": every adapter is put upon version 0, which lies first on the topic and would be the first to go;"
                    + " leave the former at 0, or set it to -1");
        }
    }
}
