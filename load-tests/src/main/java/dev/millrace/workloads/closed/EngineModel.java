package dev.millrace.workloads.closed;

import dev.millrace.policy.decoder.DecoderShape;

/** Model sizes with random weights. */
public enum EngineModel {
    /** 6 layers of 288, vocabulary 32,000, tied head: 15.2 M parameters. */
    M15("15m", new DecoderShape(32_000, 288, 6, 6, 6, 48, 768, 4096, 10_000, 1e-5, true, false)),
    /** 12 layers of 768, vocabulary 32,000, tied head: 109.5 M parameters. */
    M110("110m", new DecoderShape(32_000, 768, 12, 12, 12, 64, 2048, 4096, 10_000, 1e-5, true, false)),
    /** Qwen2.5-0.5B's shape: 24 layers of 896, vocabulary 151,936, tied head: 494 M parameters. */
    M494("494m", new DecoderShape(151_936, 896, 24, 14, 2, 64, 4864, 32_768, 1_000_000, 1e-6, true, true)),
    /** Qwen2.5-1.5B's shape: 28 layers of 1,536, vocabulary 151,936, tied head: 1,544 M parameters. */
    M1544("1.5b", new DecoderShape(151_936, 1536, 28, 12, 2, 128, 8960, 32_768, 1_000_000, 1e-6, true, true));

    private final String label;
    private final DecoderShape shape;

    EngineModel(String label, DecoderShape shape) {
        this.label = label;
        this.shape = shape;
    }

    public DecoderShape shape() {
        return shape;
    }

    @Override
    public String toString() {
        return label;
    }

    public static EngineModel parse(String text) {
        for (EngineModel model : values()) {
            if (model.toString().equalsIgnoreCase(text)) {
                return model;
            }
        }
        throw new IllegalArgumentException("size must be 15m, 110m, 494m or 1.5b: " + text);
    }
}
