package dev.millrace.policy.session;

/**
 * How a slot samples its tokens from {@code softmax(logits / temperature)}. Three filters apply in turn: the
 * {@code topK} likeliest tokens, of these the fewest that reach probability {@code topP}, and of these the tokens that
 * are at least {@code minP} times as likely as the likeliest.
 *
 * @param temperature finite and above 0; for greedy sampling set {@code topK} to 1
 * @param topK        0 keeps all
 * @param topP        above 0; 1 keeps all
 * @param minP        at most 1; 0 keeps all
 * @param recordsKept whether each draw records its kept tokens; these are then also the distribution for {@code
 * topLogProbs}
 * @param topLogProbs number of top tokens recorded per draw with their log-probs; 0 for none
 */
public record Sampling(float temperature, int topK, float topP, float minP, boolean recordsKept, int topLogProbs) {

    /** Records only the token and its log-probs. */
    public Sampling(float temperature, int topK, float topP) {
        this(temperature, topK, topP, 0, false, 0);
    }

    public Sampling {
        if (!(temperature > 0 && temperature < Float.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException("temperature must be finite and above 0: temperature=" + temperature);
        }
        if (topK < 0) {
            throw new IllegalArgumentException("topK must be at least 1, or 0 to keep all tokens: topK=" + topK);
        }
        if (!(topP > 0 && topP <= 1)) {
            throw new IllegalArgumentException("topP must be above 0 and at most 1: topP=" + topP);
        }
        if (!(minP >= 0 && minP <= 1)) {
            throw new IllegalArgumentException("minP must be at least 0 and at most 1: minP=" + minP);
        }
        if (recordsKept && topK == 0 && topP == 1 && minP == 0) {
            throw new IllegalArgumentException(
                    "recordsKept needs a topK above 0, a topP below 1 or a minP above 0, since all tokens are"
                            + " kept otherwise: topK=0, topP=1.0, minP=0.0");
        }
        if (topLogProbs < 0) {
            throw new IllegalArgumentException("topLogProbs must be at least 0: topLogProbs=" + topLogProbs);
        }
    }

    /** The whole distribution after temperature. */
    public static Sampling of(float temperature) {
        return new Sampling(temperature, 0, 1f);
    }

    /** Returns whether some tokens are left out. */
    public boolean truncates() {
        return topK > 0 || topP < 1 || minP > 0;
    }
}
