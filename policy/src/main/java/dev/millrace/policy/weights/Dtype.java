package dev.millrace.policy.weights;

import java.util.Arrays;
import java.util.Optional;

/**
 * Type of a policy's weights. In memory all are float32; those of a narrower type only have representable values, so
 * that a round trip over the wire is exact.
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

    /** Returns the type of this name in safetensors files and manifests; empty if unsupported. */
    public static Optional<Dtype> named(String name) {
        return Arrays.stream(values()).filter(type -> type.name().equals(name)).findFirst();
    }
}
