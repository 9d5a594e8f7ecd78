package dev.millrace.corrections.objective;

import static dev.millrace.corrections.objective.Bounds.inUnit;
import static dev.millrace.corrections.objective.Bounds.positive;

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
 *
 * @param anchor policy to compare with
 * @param klCovRatio share of trained tokens with the penalty
 * @param ppoKlCoef penalty on their absolute log ratio, positive
 */
public record KlCov(Anchor anchor, double klCovRatio, double ppoKlCoef) implements Objective {
    /** verl's default share. */
    public static final double DEFAULT_SHARE = 0.0002;
    /** verl's default penalty. */
    public static final double DEFAULT_PENALTY = 1.0;

    public KlCov {
        inUnit("kl_cov_ratio", klCovRatio);
        positive("ppo_kl_coef", ppoKlCoef);
    }

    public static KlCov defaults() {
        return new KlCov(Anchor.PROXIMAL, DEFAULT_SHARE, DEFAULT_PENALTY);
    }

    @Override
    public ObjectiveResult evaluate(ObjectiveInput input, UpdateFacts facts) {
        float[] proximal = input.requireProximal("KL-Cov");
        BitSet held = held(input);
        TokenRule rule = (current, anchor, advantage, term) -> {
            double logRatio = current - anchor;
            term.loss = -advantage * Math.exp(logRatio);
            term.derivative = term.loss;
            if (held.get(term.token)) {
                term.acted = logRatio != 0;
                term.loss += ppoKlCoef * Math.abs(logRatio);
                term.derivative += ppoKlCoef * Math.signum(logRatio);
            }
            term.logRatio = -Math.abs(logRatio);
        };
        return new TokenwiseLoss(input, facts.coefficients(input.batch()))
                .apply(rule, proximal)
                .withKlMetric();
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
        int count = Math.max(1, (int) (trained * klCovRatio));
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
