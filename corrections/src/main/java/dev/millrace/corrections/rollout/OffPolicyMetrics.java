package dev.millrace.corrections.rollout;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;
import dev.millrace.corrections.ratio.TokenBlock;
import java.util.Map;

/**
 * How far two policies are apart on the tokens of a batch, without correcting anything: verl's off-policy metrics.
 *
 * <p>{@code training_ppl, training_log_ppl} of the target; {@code kl, k3_kl, rollout_ppl, rollout_log_ppl,
 * log_ppl_diff, log_ppl_abs_diff, log_ppl_diff_max, log_ppl_diff_min, ppl_ratio, chi2_token, chi2_seq} of target
 * against sampler. Names come without a prefix. Unit: token means, and means over sequences for everything with a
 * perplexity and for {@code chi2_seq}. O(tokens); no allocation proportional to the tokens. Immutable and
 * thread-safe.
 */
public final class OffPolicyMetrics {
    private final Semantics semantics;

    public OffPolicyMetrics(Semantics semantics) {
        this.semantics = semantics;
    }

    /**
     * The metrics of {@code ratio}.
     *
     * @throws IllegalArgumentException if no token is trained
     * @throws dev.millrace.corrections.NonFiniteLogProbException naming policy, sequence and token
     */
    public Map<String, Double> compute(TokenBatch batch, LogRatio ratio) {
        return compute(batch, ratio, true);
    }

    /** The metrics that need the target's log-probs only: its perplexity and the log of it. */
    public Map<String, Double> ofTargetAlone(TokenBatch batch, float[] target) {
        return compute(batch, LogRatio.engineMismatch(target, target), false);
    }

    private Map<String, Double> compute(TokenBatch batch, LogRatio ratio, boolean samplerKnown) {
        ratio.requireFits(batch);
        if (batch.trainedTokens() == 0) {
            throw new IllegalArgumentException("metrics need at least one trained token: sequences="
                    + batch.sequenceCount() + ", tokens=" + batch.tokenCount());
        }
        OffPolicyPass pass = new OffPolicyPass(batch);
        TokenBlock block = new TokenBlock();
        for (int s = 0; s < batch.sequenceCount(); s++) {
            for (int t = batch.start(s); t < batch.end(s); t += TokenBlock.CAPACITY) {
                block.load(batch, ratio, s, t, Math.min(t + TokenBlock.CAPACITY, batch.end(s)));
                pass.block(block, s);
            }
        }
        MetricMap metrics = new MetricMap("");
        pass.report(semantics, samplerKnown, metrics);
        return metrics.asMap();
    }
}
