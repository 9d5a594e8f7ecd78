package dev.millrace.corrections.objective;

/**
 * The loss of one token, written by a {@link TokenRule}: {@code loss} and {@code derivative} before weight and
 * aggregation, and what the metrics count. Where it stands is given; the rest is reset before every token.
 */
final class TokenTerm {
    int sequence;
    /** Packed position of the token. */
    int token;

    double loss;
    double derivative;
    /** What the approximate KL averages, negated. */
    double logRatio;

    /** Whether the objective held the token otherwise than by clipping: a gate, a leash, a penalty. */
    boolean acted;

    boolean clipped;
    boolean lowerClipped;

    /** Returns whether the loss of the token is another than that of its ratio alone. */
    boolean actedOn() {
        return acted || clipped || lowerClipped;
    }

    void moveTo(int s, int t) {
        sequence = s;
        token = t;
        loss = 0.0;
        derivative = 0.0;
        logRatio = 0.0;
        acted = false;
        clipped = false;
        lowerClipped = false;
    }
}
