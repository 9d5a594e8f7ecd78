package dev.millrace.policy.decoder;

/** Which tensors {@link Precision#INT8} reads as integers, and under which names a graph has them. */
public final class QuantizedNames {
    private QuantizedNames() {}

    /** Whether it is the matrix of a projection. */
    public static boolean isQuantized(TensorSpec spec) {
        return WholeTensor.nameOf(spec.name()).endsWith("_proj.weight");
    }

    /** Eight-bit integers [in, out]: transposed, as the product takes them. */
    public static String integers(String name) {
        return name + ".int8";
    }

    /** What each output's integers are multiplied by, [1, out]. */
    public static String scales(String name) {
        return name + ".scales";
    }
}
