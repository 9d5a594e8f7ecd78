package dev.millrace.weights;

import dev.millrace.policy.autodiff.AdamW;
import dev.millrace.policy.decoder.TensorSpec;
import dev.millrace.policy.weights.Dtype;
import dev.millrace.policy.weights.TensorSet;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * Names of AdamW's state on the log: {@code exp_avg.<weight>} and {@code exp_avg_sq.<weight>} as in PyTorch's
 * state dict, all first moments before all second ones; then, for rounded weights after a step, {@code
 * master.<weight>}, the weights before rounding. All are float32.
 */
final class OptimizerTensors {
    private static final String FIRST = "exp_avg.";
    private static final String SECOND = "exp_avg_sq.";
    private static final String MASTER = "master.";

    private OptimizerTensors() {}

    static List<NamedTensor> named(AdamW.State state) {
        List<NamedTensor> tensors = new ArrayList<>(NamedTensor.of(state.first(), FIRST));
        tensors.addAll(NamedTensor.of(state.second(), SECOND));
        state.masters().ifPresent(masters -> tensors.addAll(NamedTensor.of(masters, MASTER)));
        return tensors;
    }

    static List<TensorSpec> specs(AdamW.State state) {
        return named(state).stream()
                .map(tensor -> new TensorSpec(tensor.name(), tensor.dims()))
                .toList();
    }

    /** Returns the size in bytes of the state of this number of parameters after a step. */
    static long bytes(long parameters, Dtype dtype) {
        return (dtype == Dtype.F32 ? 2L : 3L) * Float.BYTES * parameters;
    }

    /** All zeros, to be filled with {@link #load}. */
    static AdamW.State zero(List<TensorSpec> trained, long steps, boolean hasMasters) {
        return new AdamW.State(
                steps,
                new TensorSet(trained),
                new TensorSet(trained),
                hasMasters ? Optional.of(new TensorSet(trained)) : Optional.empty());
    }

    /** Overwrites the state's tensor of this name on the log. */
    static void load(AdamW.State state, String name, ByteBuffer data) {
        if (name.startsWith(MASTER)) {
            state.masters().orElseThrow().load(name.substring(MASTER.length()), data);
        } else if (name.startsWith(SECOND)) {
            state.second().load(name.substring(SECOND.length()), data);
        } else {
            state.first().load(name.substring(FIRST.length()), data);
        }
    }
}
