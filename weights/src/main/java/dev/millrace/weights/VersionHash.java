package dev.millrace.weights;

import dev.millrace.policy.decoder.TensorSpec;
import dev.millrace.policy.huggingface.CheckpointDirectory;
import dev.millrace.policy.weights.Bfloat16;
import dev.millrace.policy.weights.Dtype;
import dev.millrace.policy.weights.Parameters;
import dev.millrace.policy.weights.Weights;
import java.io.IOException;

/** Identity of weights in manifests and the training log: SHA-256 over the bytes of all tensors, in order. */
public final class VersionHash {
    private VersionHash() {}

    /** Lower-case hex; of weights with an adapter, the adapter's. */
    public static String of(Weights weights) {
        Parameters trained = weights.trained();
        ContentHash all = new ContentHash();
        for (TensorSpec spec : trained.specs()) {
            all.add(trained.bytes(spec.name()));
        }
        return all.hex();
    }

    /**
     * As {@link #of(Weights)} for a checkpoint's weights converted to a run's type, with the memory of its largest
     * tensor.
     *
     * @throws dev.millrace.policy.huggingface.CheckpointException if it cannot be read as a decoder
     */
    public static String of(CheckpointDirectory checkpoint, Dtype dtype) throws IOException {
        ContentHash all = new ContentHash();
        checkpoint.read((spec, bytes) -> all.add(dtype == Dtype.F32 ? bytes : Bfloat16.of(bytes.asFloatBuffer())));
        return all.hex();
    }
}
