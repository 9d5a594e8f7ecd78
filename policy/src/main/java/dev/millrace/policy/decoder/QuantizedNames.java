package dev.millrace.policy.decoder;

/** Tensors that {@link Precision#INT8} reads as integers, and their names in a graph. */
public final class QuantizedNames {
    private QuantizedNames() {}

    /** Returns whether it is the matrix of a projection. */
    public static boolean isQuantized(TensorSpec spec) {
        return WholeTensor.nameOf(spec.name()).endsWith("_proj.weight");
    }

    /** Eight-bit integers [in, out]: transposed, as the product takes them. */
    public static String integers(String name) {
        return name + ".int8";
    }

    /** Scale of each output, [1, out]. */
    public static String scales(String name) {
        return name + ".scales";
    }
}
