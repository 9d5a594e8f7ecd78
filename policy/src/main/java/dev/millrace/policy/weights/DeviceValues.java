package dev.millrace.policy.weights;

import dev.millrace.policy.decoder.TensorSpec;
import dev.millrace.policy.onnx.GraphPart;
import java.util.Map;
import java.util.function.ToDoubleFunction;

/** The values of a {@link TensorSet} in the memory of a device. As thread-safe as the set. */
public interface DeviceValues extends TensorSet.Pending {
    /** The input of {@link #update} that reads these values. */
    String VALUES = "values";

    /** The name of the output that overwrites what an input reads. */
    static String next(String input) {
        return "next." + input;
    }

    /** {@code sum x^2} over all values: of each row in float32, of the rows in double. NaN or infinite if a value is. */
    double squaredNorm();

    /** Returns whether {@link #squaredNorm} is finite, as it then was for values that have only shrunk since. */
    boolean isFinite();

    void scale(float factor);

    /**
     * Runs a graph once for each flattened tensor on these values' device.
     *
     * @param graph reads {@link #VALUES} [N], sets by their names [N] and scalars [1]; overwrites sets by {@link #next} of their names
     * @param sets of the same specs as these values; overwritten ones are newer on the device afterwards
     * @param scalars by name, each for a tensor
     */
    void update(GraphPart graph, Map<String, TensorSet> sets, Map<String, ToDoubleFunction<TensorSpec>> scalars);
}
