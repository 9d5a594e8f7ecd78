package dev.millrace.replay.retrain;

import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.learner.step.LoraStart;
import dev.millrace.learner.step.StepConfig;
import java.util.Optional;

/**
 * Settings for retraining on the recorded batches.
 *
 * @param name display name
 * @param algorithm decides the batches and trains on them
 * @param step settings of the steps
 * @param lora the initial adapter of a run's first version, if adapters are trained
 * @param isRewarded whether it sees other rewards than the recorded ones
 */
public record Variant(String name, Algorithm algorithm, StepConfig step, Optional<LoraStart> lora, boolean isRewarded) {

    /** One that sees the recorded rewards. */
    public Variant(String name, Algorithm algorithm, StepConfig step, Optional<LoraStart> lora) {
        this(name, algorithm, step, lora, false);
    }

    /** The same under other rewards than the recorded ones. */
    public Variant rewarded() {
        return new Variant(name, algorithm, step, lora, true);
    }

    /** One that trains the weights themselves. */
    public Variant(String name, Algorithm algorithm, StepConfig step) {
        this(name, algorithm, step, Optional.empty());
    }
}
