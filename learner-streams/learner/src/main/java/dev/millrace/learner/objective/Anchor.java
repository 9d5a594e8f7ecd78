package dev.millrace.learner.objective;

import dev.millrace.stages.ComparedPolicies;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** The policy that a trust region is around, and with it what is left for importance weights to correct. */
public enum Anchor {
    /** The proximal policy: a trust region around a recent policy, although the data are old. */
    PROXIMAL(ComparedPolicies.ANCHOR),
    /** The old policy, at the version that sampled: the clip itself bounds staleness; weights are for the engine's error. */
    OLD(ComparedPolicies.ENGINE_MISMATCH),
    /** The behavior policy: the clip bounds everything, and nothing is left to weights. */
    BEHAVIOR(null);

    private final @Nullable ComparedPolicies weights;

    Anchor(@Nullable ComparedPolicies weights) {
        this.weights = weights;
    }

    /** What the importance weights have to compare; empty if there must be none. */
    public Optional<ComparedPolicies> weightsCompare() {
        return Optional.ofNullable(weights);
    }
}
