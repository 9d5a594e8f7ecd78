package dev.millrace.policy.session;

import dev.millrace.policy.decoder.DecoderShape;

/**
 * Scores of given tokens under {@code softmax(logits / temperature)}; packed as in {@link SequenceBatch}.
 *
 * @param logProbs        natural log of the given token's probability
 * @param entropies       {@code -sum p log p} of the distribution the token was drawn from, in nats
 * @param sumSquaredProbs {@code sum p^2} of that distribution
 * @param values          value head's output before the token; empty for a policy without one
 */
public record TokenScores(float[] logProbs, float[] entropies, float[] sumSquaredProbs, float[] values) {

    public static TokenScores allocate(int count, DecoderShape shape) {
        return new TokenScores(
                new float[count], new float[count], new float[count], new float[shape.valueHead() ? count : 0]);
    }

    public int count() {
        return logProbs.length;
    }
}
