package dev.millrace.corrections.objective;

import dev.millrace.corrections.ratio.RatioKind;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * The policy in the denominator of an objective's ratio. It also determines the gap that importance weights have to
 * correct.
 */
public enum Anchor {
    /** The proximal policy: a trust region around a recent policy, although the data are old. */
    PROXIMAL(RatioKind.ANCHOR),
    /** The old policy, at the version that sampled: the clip itself bounds staleness; weights are for the engine's error. */
    OLD(RatioKind.ENGINE_MISMATCH),
    /** The behavior policy: the objective's own ratio corrects for everything, and nothing is left to weights. */
    BEHAVIOR(null);

    private final @Nullable RatioKind weights;

    Anchor(@Nullable RatioKind weights) {
        this.weights = weights;
    }

    /** Returns what the importance weights must compare; empty if there must be none. */
    public Optional<RatioKind> weightsCompare() {
        return Optional.ofNullable(weights);
    }
}
