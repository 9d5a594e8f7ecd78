package dev.millrace.policy.weights;

import java.util.Arrays;
import java.util.Optional;

/**
 * What the values of a policy's weights are. In memory all are float32, since that is what the engine computes with; those of a
 * narrower type are values that it can hold, so that going to the wire and back changes none.
 */
public enum Dtype {
    /** IEEE 754 binary32. */
    F32(Float.BYTES),
    /** The upper half of a binary32: its exponents, and 8 significant bits. */
    BF16(Short.BYTES);

    private final int bytes;

    Dtype(int bytes) {
        this.bytes = bytes;
    }

    /** Bytes of a value on the wire. */
    public int bytes() {
        return bytes;
    }

    /** The type that safetensors files and manifests give this name; empty for one that this release does not know. */
    public static Optional<Dtype> named(String name) {
        return Arrays.stream(values()).filter(type -> type.name().equals(name)).findFirst();
    }
}
