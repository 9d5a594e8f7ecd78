package dev.millrace.corrections.filter;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;

/** Whether a token is kept, by the log-probs of two policies. */
interface TokenCondition {
    boolean keeps(double target, double sampler);

    /**
     * One byte per packed token: 1 if trained and kept.
     *
     * @throws dev.millrace.corrections.NonFiniteLogProbException naming sequence and token
     */
    static byte[] mask(TokenBatch batch, LogRatio ratio, TokenCondition condition) {
        ratio.requireFinite(batch);
        byte[] keep = new byte[batch.tokenCount()];
        for (int t = 0; t < keep.length; t++) {
            keep[t] = (byte) (batch.isTrained(t) && condition.keeps(ratio.targetAt(t), ratio.samplerAt(t)) ? 1 : 0);
        }
        return keep;
    }
}
