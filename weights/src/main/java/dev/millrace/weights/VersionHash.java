package dev.millrace.weights;

import dev.millrace.policy.decoder.TensorSpec;
import dev.millrace.policy.weights.Weights;

/** The identity of weights as a manifest and the training log give it: SHA-256 over the bytes of all tensors, in their order. */
public final class VersionHash {
    private VersionHash() {}

    /** Lower-case hex. */
    public static String of(Weights weights) {
        ContentHash all = new ContentHash();
        for (TensorSpec spec : weights.tensors().specs()) {
            all.add(weights.bytes(spec.name()));
        }
        return all.hex();
    }
}
