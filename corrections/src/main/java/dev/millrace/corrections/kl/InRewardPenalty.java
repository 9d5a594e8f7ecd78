package dev.millrace.corrections.kl;

import dev.millrace.corrections.TokenBatch;

/**
 * A KL penalty in the reward: {@code r_t ← r_t − c · kl_t} at trained tokens, with the divergence it measured for the
 * controller.
 *
 * <p>Unit: token. The measured divergence is the mean over sequences of the mean over their trained tokens; sequences
 * without a trained token do not count. verl counts them as 0, which lets masking loosen the leash: {@link
 * #asReference} reproduces that. Which estimator is right here: {@link KlUse#REWARD} of {@link KlPlan}, that is k1.
 *
 * <p>Source: Ziegler et al. 2019 (arXiv 1909.08593); verl {@code apply_kl_penalty}.
 */
public final class InRewardPenalty {
    private final KlEstimator estimator;
    private final boolean countsEverySequence;

    private InRewardPenalty(KlEstimator estimator, boolean countsEverySequence) {
        this.estimator = estimator;
        this.countsEverySequence = countsEverySequence;
    }

    /** The penalty that is right: k1. */
    public InRewardPenalty() {
        this(new KlEstimator(KlForm.K1, false), false);
    }

    /** As verl: any estimator, and fully masked sequences count as divergence 0. */
    public static InRewardPenalty asReference(KlEstimator estimator) {
        return new InRewardPenalty(estimator, true);
    }

    /**
     * The rewards minus {@code coefficient} times the estimate of each trained token.
     *
     * @param rewards one per packed token
     * @param current log-probs of the policy that is kept near the reference, usually the old ones
     * @param reference log-probs of the reference
     */
    public double[] penalise(
            TokenBatch batch, double[] rewards, float[] current, float[] reference, double coefficient) {
        batch.requireFinite("rewards", rewards);
        requireLogProbs(batch, current, reference);
        double[] penalised = rewards.clone();
        for (int t = 0; t < penalised.length; t++) {
            if (batch.isTrained(t)) {
                penalised[t] -= coefficient * estimator.value((double) current[t] - reference[t]);
            }
        }
        return penalised;
    }

    /** Mean over sequences of their mean estimate. */
    public double measure(TokenBatch batch, float[] current, float[] reference) {
        requireLogProbs(batch, current, reference);
        double sum = 0.0;
        int counted = 0;
        for (int s = 0; s < batch.sequenceCount(); s++) {
            double kl = 0.0;
            for (int t = batch.start(s); t < batch.end(s); t++) {
                kl += batch.isTrained(t) ? estimator.value((double) current[t] - reference[t]) : 0.0;
            }
            sum += kl / Math.max(1, batch.trainedTokens(s));
            counted += countsEverySequence || batch.trainedTokens(s) > 0 ? 1 : 0;
        }
        return counted == 0 ? 0.0 : sum / counted;
    }

    private static void requireLogProbs(TokenBatch batch, float[] current, float[] reference) {
        batch.requireFinite("current log-probs", current);
        batch.requireFinite("reference log-probs", reference);
    }
}
