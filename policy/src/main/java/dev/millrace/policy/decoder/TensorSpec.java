package dev.millrace.policy.decoder;

import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/**
 * Name and axis lengths of one float32 tensor, named and laid out as in a Hugging Face checkpoint.
 *
 * @param name for instance {@code model.layers.0.self_attn.q_proj.weight}
 * @param dims axis lengths, outermost first; a linear layer is {@code [out, in]}
 */
public record TensorSpec(String name, List<Long> dims) {
    /** 2 GiB of float32, the limit of one buffer. */
    public static final int MOST_ELEMENTS = Integer.MAX_VALUE / Float.BYTES;

    public TensorSpec {
        if (name.isBlank()) {
            throw new IllegalArgumentException("a tensor needs a name; its dims are " + dims);
        }
        dims = List.copyOf(dims);
        long elements = 1;
        for (long dim : dims) {
            if (dim < 1) {
                throw new IllegalArgumentException("every axis of " + name + " must be at least 1: dims=" + dims);
            }
            elements = Math.multiplyExact(elements, dim);
        }
        if (elements > MOST_ELEMENTS) {
            throw new IllegalArgumentException(String.format(
                    Locale.ROOT,
                    "%s has %,d numbers, and a tensor may have %,d (2 GiB of float32, which is as much as one buffer takes)",
                    name,
                    elements,
                    MOST_ELEMENTS));
        }
    }

    public static TensorSpec of(String name, long... dims) {
        return new TensorSpec(name, Arrays.stream(dims).boxed().toList());
    }

    /** Product of the axis lengths; fits an int because one buffer holds the tensor. */
    public int elementCount() {
        return Math.toIntExact(dims.stream().mapToLong(Long::longValue).reduce(1, (a, b) -> a * b));
    }

    /** The axis lengths as ONNX Runtime wants them; a fresh array. */
    public long[] dimsArray() {
        return dims.stream().mapToLong(Long::longValue).toArray();
    }
}
