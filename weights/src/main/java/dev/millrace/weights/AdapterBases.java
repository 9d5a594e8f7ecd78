package dev.millrace.weights;

import dev.millrace.policy.weights.FrozenWeights;
import dev.millrace.policy.weights.Weights;

/** The base weights of adapters, shared by all roles of a process. Thread-safe. */
public final class AdapterBases {
    private AdapterBases() {}

    /** Returns the plain weights of a version as a frozen base; the caller may continue writing to its own. */
    public static FrozenWeights of(Weights version) {
        String sha256 = VersionHash.of(version);
        return Shared.BASES.get(sha256, () -> new FrozenWeights(version, sha256));
    }
}
