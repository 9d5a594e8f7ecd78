package dev.millrace.weights;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.TensorSpec;
import dev.millrace.policy.optimizer.AdamW;
import dev.millrace.policy.weights.Dtype;
import dev.millrace.policy.weights.TensorSet;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;

/**
 * How AdamW's moments are named on the log: {@code exp_avg.<weight>} and {@code exp_avg_sq.<weight>} as in PyTorch's
 * state dict, all first moments before all second ones; behind them, where the version's weights are rounded and a step was taken,
 * {@code master.<weight>}, the weights before rounding. All are float32.
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

    static List<TensorSpec> specs(DecoderShape shape, boolean hasMasters) {
        List<TensorSpec> specs = new ArrayList<>();
        for (String part : hasMasters ? List.of(FIRST, SECOND, MASTER) : List.of(FIRST, SECOND)) {
            shape.tensors().forEach(spec -> specs.add(new TensorSpec(part + spec.name(), spec.dims())));
        }
        return specs;
    }

    /** Size of the state after a step. */
    static long bytes(DecoderShape shape, Dtype dtype) {
        return (dtype == Dtype.F32 ? 2L : 3L) * Float.BYTES * shape.parameterCount();
    }

    /** Before the first step. */
    static AdamW.State zero(DecoderShape shape) {
        return new AdamW.State(0, new TensorSet(shape.tensors()), new TensorSet(shape.tensors()));
    }

    static AdamW.State state(DecoderShape shape, long steps, boolean hasMasters, Map<String, ByteBuffer> data) {
        return new AdamW.State(
                steps,
                set(shape, FIRST, data),
                set(shape, SECOND, data),
                hasMasters ? Optional.of(set(shape, MASTER, data)) : Optional.empty());
    }

    private static TensorSet set(DecoderShape shape, String part, Map<String, ByteBuffer> data) {
        TensorSet set = new TensorSet(shape.tensors());
        set.specs()
                .forEach(spec ->
                        set.load(spec.name(), Objects.requireNonNull(data.get(part + spec.name()), spec.name())));
        return set;
    }
}
