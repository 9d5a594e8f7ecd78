package dev.millrace.policy.weights;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.TensorSpec;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * One float per parameter that is trained, all of a decoder's or an adapter's: the sum of what gradient sessions accumulated into it.
 *
 * <p>Heap arrays, since everything done with gradients is a Java loop. One owner, no synchronisation.
 */
public final class Gradients {
    private final List<TensorSpec> specs;
    private final Map<String, float[]> tensors = new LinkedHashMap<>();

    /** All zeros, of all of a decoder's parameters. */
    public Gradients(DecoderShape shape) {
        this(shape.tensors());
    }

    /** All zeros. */
    public Gradients(List<TensorSpec> specs) {
        this.specs = List.copyOf(specs);
        specs.forEach(spec -> tensors.put(spec.name(), new float[spec.elementCount()]));
    }

    /** Names and shapes, in the order of every iteration. */
    public List<TensorSpec> specs() {
        return specs;
    }

    /** The live array of one tensor, row-major: what is written to it is in the gradient. */
    public float[] tensor(String name) {
        float[] tensor = tensors.get(name);
        if (tensor == null) {
            throw new IllegalArgumentException("there is no gradient " + name + " among " + tensors.keySet());
        }
        return tensor;
    }

    public void zero() {
        tensors.values().forEach(tensor -> Arrays.fill(tensor, 0f));
    }

    public void scale(float factor) {
        for (float[] tensor : tensors.values()) {
            for (int i = 0; i < tensor.length; i++) {
                tensor[i] *= factor;
            }
        }
    }

    /** Adds other gradients of the same shape. */
    public void add(Gradients other) {
        if (!other.specs.equals(specs)) {
            throw new IllegalArgumentException(
                    "gradients of different tensors: " + other.specs.size() + " of them, " + specs.size());
        }
        tensors.forEach((name, tensor) -> {
            float[] added = other.tensor(name);
            for (int i = 0; i < tensor.length; i++) {
                tensor[i] += added[i];
            }
        });
    }

    /** {@code sqrt(sum g^2)} over all parameters, summed in double; NaN or infinite if any element is. */
    public double l2Norm() {
        double sum = 0;
        for (float[] tensor : tensors.values()) {
            for (float value : tensor) {
                sum += (double) value * value;
            }
        }
        return Math.sqrt(sum);
    }
}
