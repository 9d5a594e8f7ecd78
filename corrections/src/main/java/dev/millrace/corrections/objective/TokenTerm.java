package dev.millrace.corrections.objective;

/**
 * The loss of one token, written by a {@link TokenRule}: {@code loss} and {@code derivative} before weight and
 * aggregation, and what the metrics count. Reset before every token.
 */
final class TokenTerm {
    double loss;
    double derivative;
    double logRatio;
    boolean clipped;
    boolean lowerClipped;

    void reset() {
        loss = 0.0;
        derivative = 0.0;
        logRatio = 0.0;
        clipped = false;
        lowerClipped = false;
    }
}
