package dev.millrace.gateway.engine;

/** Of which distribution an engine's log-probs are. */
public enum EngineLogProbs {
    /** Of the softmax at temperature 1, whatever it was sampled at. What it samples can be trained on at temperature 1 alone. */
    RAW,
    /** Of the softmax that it was sampled from. */
    PROCESSED;

    /** In which temperature they are. */
    double temperature(double sampledAt) {
        return this == RAW ? 1 : sampledAt;
    }

    EngineLogProbs other() {
        return this == RAW ? PROCESSED : RAW;
    }
}
