package dev.millrace.replay.retrain;

import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.learner.step.LoraStart;
import dev.millrace.learner.step.StepConfig;
import java.util.Optional;

/**
 * Settings under which is learnt from the recorded batches.
 *
 * @param name for people
 * @param algorithm by which batches are decided and learnt from
 * @param step what the steps are taken with
 * @param lora the adapter that a run's first version is given, where adapters are trained
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
