package dev.millrace.benchmarks.engine;

import dev.millrace.policy.decoder.DecoderShape;

/** Shapes of Llamas with a vocabulary of 32,000 and a tied head, whose weights a benchmark draws. */
final class RandomLlama {
    private RandomLlama() {}

    /** @param name {@code 15m} or {@code 113m}, about its parameters */
    static DecoderShape shape(String name) {
        return switch (name) {
            case "15m" -> new DecoderShape(32_000, 288, 6, 6, 6, 48, 768, 1024, 10_000, 1e-5, true, false);
            case "113m" -> new DecoderShape(32_000, 768, 12, 12, 12, 64, 2048, 1024, 10_000, 1e-5, true, false);
            default -> throw new IllegalArgumentException("15m or 113m: " + name);
        };
    }
}
