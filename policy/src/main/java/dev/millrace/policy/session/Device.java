package dev.millrace.policy.session;

import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Where graphs run: {@code cpu}, or {@code cuda:N} for the N-th CUDA device, or {@code cuda:N:tf32} for the same with faster products.
 *
 * @param kind    which ONNX Runtime provider
 * @param ordinal number of the CUDA device; 0 for the CPU
 * @param tf32    whether products of float32 read their factors with the 10 bits of mantissa of TF32, on tensor cores; sums are float32
 */
public record Device(Kind kind, int ordinal, boolean tf32) {
    public static final Device CPU = new Device(Kind.CPU, 0, false);
    private static final Pattern CUDA = Pattern.compile("cuda:(\\d{1,3})(:tf32)?");

    /** The providers a device can name. */
    public enum Kind {
        CPU,
        CUDA
    }

    public Device {
        if (ordinal < 0 || kind == Kind.CPU && (ordinal != 0 || tf32)) {
            throw new IllegalArgumentException(
                    "no device of kind " + kind + " has the ordinal " + ordinal + (tf32 ? " and TF32" : ""));
        }
    }

    /** Reads {@code cpu}, {@code cuda:0} or {@code cuda:0:tf32}; anything else is refused. */
    public static Device parse(String text) {
        Matcher cuda = CUDA.matcher(text);
        if (cuda.matches()) {
            return new Device(Kind.CUDA, Integer.parseInt(cuda.group(1)), cuda.group(2) != null);
        }
        if (text.equals("cpu")) {
            return CPU;
        }
        throw new IllegalArgumentException("device must be cpu, cuda:N or cuda:N:tf32, such as cuda:0: device=" + text);
    }

    /** The same without TF32. */
    Device exact() {
        return new Device(kind, ordinal, false);
    }

    @Override
    public String toString() {
        return kind == Kind.CPU ? "cpu" : "cuda:" + ordinal + (tf32 ? ":tf32" : "");
    }
}
