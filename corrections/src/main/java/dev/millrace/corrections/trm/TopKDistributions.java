package dev.millrace.corrections.trm;

import org.jspecify.annotations.Nullable;

/**
 * The k entries of each token that were stored, {@code [tokens][k]}, with everything else as one more entry whose
 * probability is what is missing to 1.
 *
 * <p>Which k entries does not matter for correctness, as long as both policies' log-probs are of the same ones; the
 * behavior policy's largest tell most.
 *
 * <p>Merging entries can only hide differences (the data-processing inequality), so both divergences here are lower
 * bounds of the true ones. A sequence rejected by them is rejected by the whole distributions too; one that passes
 * need not be within the trust region, so no error bound follows from passing. The gap is the divergence within the
 * rest: it has no bound in general, since the current policy may rule out a token of it. Where the behavior policy has
 * no rest, the KL is exact: k is the size of the vocabulary, or at least the number of tokens that top-k, top-p and
 * min-p left, over which both policies are compared.
 */
public final class TopKDistributions implements StoredDistributions {
    /**
     * Smallest probability of the rest that a difference to 1 in float log-probs resolves. A smaller rest of the
     * current policy counts as this much, which lowers the bound and keeps it one.
     */
    private static final double RESOLUTION = 1e-6;

    private final int k;
    private final float[] behavior;
    private final float[] current;
    private final float @Nullable [] behaviorRest;

    /**
     * @param behavior log-probs, {@code [tokens][k]}
     * @param current log-probs of the same entries, {@code [tokens][k]}
     */
    public TopKDistributions(int k, float[] behavior, float[] current) {
        this(k, behavior, current, null);
    }

    /**
     * The same if the behavior policy's remainder is known.
     *
     * @param behaviorRest logs of the probability of all other entries together, {@code [tokens]}; negative infinity
     *     where there is nothing else
     */
    public TopKDistributions(int k, float[] behavior, float[] current, float @Nullable [] behaviorRest) {
        if (k < 1
                || behavior.length != current.length
                || behavior.length % k != 0
                || behaviorRest != null && behaviorRest.length != behavior.length / k) {
            throw new IllegalArgumentException("distributions need [tokens][k] log-probs of both policies: k=" + k
                    + ", behavior=" + behavior.length + ", current=" + current.length
                    + (behaviorRest == null ? "" : ", rest=" + behaviorRest.length));
        }
        this.k = k;
        this.behavior = behavior;
        this.current = current;
        this.behaviorRest = behaviorRest;
    }

    @Override
    public boolean isWhole(int token) {
        return behaviorRest != null && behaviorRest[token] == Float.NEGATIVE_INFINITY;
    }

    @Override
    public int tokens() {
        return behavior.length / k;
    }

    @Override
    public double klAt(int token) {
        double kl = 0.0;
        for (int i = token * k; i < (token + 1) * k; i++) {
            double p = FullDistributions.probability(behavior[i]);
            FullDistributions.probability(current[i]);
            if (p > 0.0) {
                kl += p * ((double) behavior[i] - current[i]);
            }
        }
        double ofBehavior = rest("behavior", behavior, token);
        double ofCurrent = Math.max(RESOLUTION, rest("current", current, token));
        if (ofBehavior > RESOLUTION && !isWhole(token)) {
            kl += ofBehavior * Math.log(ofBehavior / ofCurrent);
        }
        return Math.max(0.0, kl);
    }

    @Override
    public double totalVariationAt(int token) {
        double sum = Math.abs(rest("behavior", behavior, token) - rest("current", current, token));
        for (int i = token * k; i < (token + 1) * k; i++) {
            sum += Math.abs(FullDistributions.probability(behavior[i]) - FullDistributions.probability(current[i]));
        }
        return Math.min(1.0, 0.5 * sum);
    }

    private double rest(String policy, float[] logProbs, int token) {
        double sum = 0.0;
        for (int i = token * k; i < (token + 1) * k; i++) {
            sum += Math.exp(logProbs[i]);
        }
        if (sum > 1.0 + FullDistributions.SUM_TOLERANCE) {
            throw new IllegalArgumentException(
                    "the stored probabilities of the " + policy + " policy must not exceed 1: sum=" + sum);
        }
        return Math.max(0.0, 1.0 - sum);
    }
}
