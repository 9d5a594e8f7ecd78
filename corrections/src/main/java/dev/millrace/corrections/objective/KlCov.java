package dev.millrace.corrections.objective;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.TokenBatch;
import java.util.Arrays;
import java.util.BitSet;

/**
 * KL-Cov: the unclipped surrogate {@code ℓ = −A r}, with a penalty {@code + β |log π − log π_prox|} on the few tokens
 * whose covariance of advantage and log-prob is largest.
 *
 * <p>Unit of correction: token. Entropy falls through those few tokens; holding only them keeps exploration without
 * slowing the rest. Which tokens: the {@code max(1, ⌊share · trained tokens⌋)} with the largest {@code (A − mean
 * A)(log π − mean log π)}; among equals the earlier ones. The derivative is {@code −A r}, plus {@code β sgn(log π − log
 * π_prox)} on the held tokens. The log ratio is not bounded. Metric: {@link ObjectiveResult#APPROX_KL}, here the mean
 * <em>absolute</em> log ratio, as in verl.
 *
 * <p>Source: Cui et al. 2025, "The Entropy Mechanism of Reinforcement Learning" (arXiv 2505.22617).
 */
public final class KlCov implements Objective {
    /** verl's default share. */
    public static final double DEFAULT_SHARE = 0.0002;
    /** verl's default penalty. */
    public static final double DEFAULT_PENALTY = 1.0;

    private final double share;
    private final double penalty;
    private final LossAggregation aggregation;

    /**
     * @param share of the trained tokens that are held; in (0, 1]
     * @param penalty β; finite and not negative
     */
    public KlCov(double share, double penalty, LossAggregation aggregation) {
        if (!(share > 0 && share <= 1)) {
            throw new IllegalArgumentException("the share of held tokens must be in (0, 1]: " + share);
        }
        if (!(penalty >= 0 && penalty < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException("the penalty must be finite and not negative: " + penalty);
        }
        this.share = share;
        this.penalty = penalty;
        this.aggregation = aggregation;
    }

    @Override
    public CorrectionUnit unit() {
        return CorrectionUnit.TOKEN;
    }

    @Override
    public ObjectiveResult evaluate(ObjectiveInput input) {
        float[] proximal = input.requireProximal("KL-Cov");
        BitSet held = held(input);
        TokenRule rule = (current, anchor, advantage, term) -> {
            double logRatio = current - anchor;
            term.loss = -advantage * Math.exp(logRatio);
            term.derivative = term.loss;
            if (held.get(term.token)) {
                term.loss += penalty * Math.abs(logRatio);
                term.derivative += penalty * Math.signum(logRatio);
            }
            term.logRatio = -Math.abs(logRatio);
        };
        return new TokenwiseLoss(input, aggregation).apply(rule, proximal).withKlMetric();
    }

    /** Allocates two arrays of the trained tokens' size: the covariances and their sorted copy. */
    private BitSet held(ObjectiveInput input) {
        TokenBatch batch = input.batch();
        int trained = batch.trainedTokens();
        BitSet held = new BitSet(batch.tokenCount());
        if (trained == 0) {
            return held;
        }
        TokenCovariance covariance = new TokenCovariance(input);
        double[] sorted = new double[trained];
        int n = 0;
        for (int t = 0; t < batch.tokenCount(); t++) {
            if (batch.isTrained(t)) {
                sorted[n++] = covariance.of(t);
            }
        }
        Arrays.sort(sorted);
        int count = Math.max(1, (int) (trained * share));
        double threshold = sorted[trained - count];
        int above = count; // how many strictly above the threshold, the rest of the count being ties with it
        while (above > 0 && sorted[trained - above] <= threshold) {
            above--;
        }
        int ties = count - above;
        for (int t = 0; t < batch.tokenCount(); t++) {
            if (batch.isTrained(t)) {
                double c = covariance.of(t);
                if (c > threshold || c == threshold && ties-- > 0) {
                    held.set(t);
                }
            }
        }
        return held;
    }
}
