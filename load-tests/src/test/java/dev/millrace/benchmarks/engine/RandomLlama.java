package dev.millrace.benchmarks.engine;

import dev.millrace.policy.decoder.DecoderShape;

/** Shapes of Llamas with a vocabulary of 32,000 and a tied head, whose weights a benchmark draws. */
public final class RandomLlama {
    private RandomLlama() {}

    /** @param name {@code 15m} or {@code 113m}, about its parameters */
    public static DecoderShape shape(String name) {
        return shape(name, 1024);
    }

    /** @param positions that it has at least; random weights do not mind how many */
    static DecoderShape shape(String name, int positions) {
        int longest = Math.max(1024, positions);
        return switch (name) {
            case "15m" -> new DecoderShape(32_000, 288, 6, 6, 6, 48, 768, longest, 10_000, 1e-5, true, false);
            case "113m" -> new DecoderShape(32_000, 768, 12, 12, 12, 64, 2048, longest, 10_000, 1e-5, true, false);
            default -> throw new IllegalArgumentException("15m or 113m: " + name);
        };
    }
}
