package dev.millrace.replay.retrain;

import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.learner.step.LoraStart;
import dev.millrace.learner.step.StepConfig;
import java.util.Optional;

/**
 * Settings of a re-train.
 *
 * @param lora initial adapter of a run's first version, if adapters are trained
 * @param isRewarded sees other rewards than recorded
 */
public record Variant(String name, Algorithm algorithm, StepConfig step, Optional<LoraStart> lora, boolean isRewarded) {

    public Variant(String name, Algorithm algorithm, StepConfig step, Optional<LoraStart> lora) {
        this(name, algorithm, step, lora, false);
    }

    public Variant rewarded() {
        return new Variant(name, algorithm, step, lora, true);
    }

    public Variant(String name, Algorithm algorithm, StepConfig step) {
        this(name, algorithm, step, Optional.empty());
    }
}
