package dev.millrace.corrections.advantage;

import dev.millrace.corrections.TokenBatch;

/** Spreads one advantage per sequence over its trained tokens; 0 at context tokens. */
public final class TokenAdvantages {
    private TokenAdvantages() {}

    /**
     * One advantage per packed token.
     *
     * @param perSequence one advantage per sequence
     */
    public static float[] spread(TokenBatch batch, double[] perSequence) {
        SequenceRewards.requireFinite(batch, "advantages", perSequence);
        float[] advantages = new float[batch.tokenCount()];
        for (int s = 0; s < batch.sequenceCount(); s++) {
            for (int t = batch.start(s); t < batch.end(s); t++) {
                advantages[t] = batch.isTrained(t) ? (float) perSequence[s] : 0f;
            }
        }
        return advantages;
    }
}
