package dev.millrace.policy.session;

/**
 * What the policy thinks of given tokens, under {@code softmax(logits / temperature)}; packed as in {@link SequenceBatch}.
 *
 * @param logProbs        natural log of the given token's probability
 * @param entropies       {@code -sum p log p} of the distribution the token was drawn from, in nats
 * @param sumSquaredProbs {@code sum p^2} of that distribution
 */
public record TokenScores(float[] logProbs, float[] entropies, float[] sumSquaredProbs) {

    static TokenScores allocate(int count) {
        return new TokenScores(new float[count], new float[count], new float[count]);
    }

    public int count() {
        return logProbs.length;
    }
}
