package dev.millrace.weights;

import dev.millrace.policy.weights.FrozenWeights;
import dev.millrace.policy.weights.Weights;

/** The weights that adapters are put upon, once in a process: its roles hold the same. Thread-safe. */
public final class AdapterBases {
    private AdapterBases() {}

    /** Plain weights of a version as such; the caller may go on writing to its own. */
    public static FrozenWeights of(Weights version) {
        String sha256 = VersionHash.of(version);
        return Shared.BASES.get(sha256, () -> new FrozenWeights(version, sha256));
    }
}
