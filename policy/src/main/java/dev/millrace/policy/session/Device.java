package dev.millrace.policy.session;

/**
 * Where graphs run: {@code cpu}, or {@code cuda:N} for the N-th CUDA device.
 *
 * @param kind    which ONNX Runtime provider
 * @param ordinal number of the CUDA device; 0 for the CPU
 */
public record Device(Kind kind, int ordinal) {
    public static final Device CPU = new Device(Kind.CPU, 0);
    private static final String CUDA_PREFIX = "cuda:";

    /** The providers a device can name. */
    public enum Kind {
        CPU,
        CUDA
    }

    public Device {
        if (ordinal < 0 || kind == Kind.CPU && ordinal != 0) {
            throw new IllegalArgumentException("no device has the ordinal " + ordinal + " of kind " + kind);
        }
    }

    /** Reads {@code cpu} or {@code cuda:0}; anything else is refused. */
    public static Device parse(String text) {
        if (text.equals("cpu")) {
            return CPU;
        }
        if (text.matches(CUDA_PREFIX + "\\d{1,3}")) {
            return new Device(Kind.CUDA, Integer.parseInt(text.substring(CUDA_PREFIX.length())));
        }
        throw new IllegalArgumentException("device must be cpu or cuda:N, such as cuda:0: device=" + text);
    }

    @Override
    public String toString() {
        return kind == Kind.CPU ? "cpu" : CUDA_PREFIX + ordinal;
    }
}
