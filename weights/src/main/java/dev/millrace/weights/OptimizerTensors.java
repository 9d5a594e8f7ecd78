package dev.millrace.weights;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.TensorSpec;
import dev.millrace.policy.optimizer.AdamW;
import dev.millrace.policy.weights.TensorSet;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/**
 * How AdamW's moments are named on the log: {@code exp_avg.<weight>} and {@code exp_avg_sq.<weight>} as in PyTorch's
 * state dict, all first moments before all second ones.
 */
final class OptimizerTensors {
    private static final String FIRST = "exp_avg.";
    private static final String SECOND = "exp_avg_sq.";

    private OptimizerTensors() {}

    static List<NamedTensor> named(AdamW.State state) {
        List<NamedTensor> tensors = new ArrayList<>(NamedTensor.of(state.first(), FIRST));
        tensors.addAll(NamedTensor.of(state.second(), SECOND));
        return tensors;
    }

    static List<TensorSpec> specs(DecoderShape shape) {
        List<TensorSpec> specs = new ArrayList<>();
        for (String moment : List.of(FIRST, SECOND)) {
            shape.tensors().forEach(spec -> specs.add(new TensorSpec(moment + spec.name(), spec.dims())));
        }
        return specs;
    }

    static AdamW.State state(DecoderShape shape, long steps, Map<String, ByteBuffer> data) {
        return new AdamW.State(steps, set(shape, FIRST, data), set(shape, SECOND, data));
    }

    private static TensorSet set(DecoderShape shape, String moment, Map<String, ByteBuffer> data) {
        TensorSet set = new TensorSet(shape.tensors());
        set.specs()
                .forEach(spec ->
                        set.load(spec.name(), Objects.requireNonNull(data.get(moment + spec.name()), spec.name())));
        return set;
    }
}
