package dev.millrace.corrections.kl;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.kl.KlTerms.Formula;
import dev.millrace.corrections.ratio.LogRatio;
import java.util.OptionalDouble;

/**
 * A KL penalty in the reward: {@code r_t ← r_t − c · w_t · kl_t} at trained tokens, with the divergence it measured for the
 * controller.
 *
 * <p>Unit: token. With {@code d = log current − log reference} and {@code r = e^−d}, {@code kl_t} is {@code d} for
 * KL(current‖reference), whose expectation and policy gradient that has. For KL(reference‖current) it is {@code 1 − r}:
 * {@code E[(1 − r) ∇ log current]} is its gradient. Since the expectation of {@code 1 − r} is 0, {@code r log r − r + 1}
 * is measured in its place.
 *
 * <p>The weight {@code w_t} is 1, or current over behavior, truncated. The penalties of later tokens then have the current
 * policy's expectation, which an update's weight on the token itself does not give them.
 *
 * <p>The measured divergence is the mean over sequences of the mean over their trained tokens; sequences without a trained token
 * do not count. verl counts them as 0, which lets masking loosen the leash: {@link #asReference} reproduces that.
 *
 * <p>Source: Ziegler et al. 2019 (arXiv 1909.08593); verl {@code apply_kl_penalty}.
 */
public final class InRewardPenalty {
    private final Formula penalty;
    private final Formula measured;
    private final boolean weighted;
    private final double cap;
    private final boolean countsEverySequence;

    private InRewardPenalty(
            Formula penalty, Formula measured, boolean weighted, double cap, boolean countsEverySequence) {
        this.penalty = penalty;
        this.measured = measured;
        this.weighted = weighted;
        this.cap = cap;
        this.countsEverySequence = countsEverySequence;
    }

    public InRewardPenalty(KlDivergence divergence) {
        this(charge(divergence), value(divergence), false, 0, false);
    }

    /** @param cap largest weight; empty for e^20 */
    public static InRewardPenalty weighted(KlDivergence divergence, OptionalDouble cap) {
        return new InRewardPenalty(
                charge(divergence), value(divergence), true, cap.orElse(Double.POSITIVE_INFINITY), false);
    }

    /** As verl: any estimator, and fully masked sequences count as divergence 0. */
    public static InRewardPenalty asReference(KlEstimator estimator) {
        Formula value = (d, w) -> estimator.value(d);
        return new InRewardPenalty(value, value, false, 0, true);
    }

    private static Formula charge(KlDivergence divergence) {
        return KlTerms.best(divergence, KlSampling.CURRENT, KlUse.REWARD).value();
    }

    private static Formula value(KlDivergence divergence) {
        return divergence == KlDivergence.REVERSE
                ? charge(divergence)
                : KlTerms.best(divergence, KlSampling.CURRENT, KlUse.VALUE).value();
    }

    /**
     * The rewards minus {@code coefficient} times the penalty of each trained token.
     *
     * @param current log-probs of the policy that is kept near the reference, usually the old ones
     * @param behavior log-probs of the policy that sampled; read where the penalty is weighted
     */
    public double[] penalise(
            TokenBatch batch,
            double[] rewards,
            float[] current,
            float[] behavior,
            float[] reference,
            double coefficient) {
        batch.requireFinite("rewards", rewards);
        requireLogProbs(batch, current, behavior, reference);
        double[] penalised = rewards.clone();
        for (int t = 0; t < penalised.length; t++) {
            if (batch.isTrained(t)) {
                penalised[t] -= coefficient * weighed(penalty, current, behavior, reference, t);
            }
        }
        return penalised;
    }

    /** Mean over sequences of their mean divergence. */
    public double measure(TokenBatch batch, float[] current, float[] behavior, float[] reference) {
        requireLogProbs(batch, current, behavior, reference);
        double sum = 0.0;
        int counted = 0;
        for (int s = 0; s < batch.sequenceCount(); s++) {
            double kl = 0.0;
            for (int t = batch.start(s); t < batch.end(s); t++) {
                kl += batch.isTrained(t) ? weighed(measured, current, behavior, reference, t) : 0.0;
            }
            sum += kl / Math.max(1, batch.trainedTokens(s));
            counted += countsEverySequence || batch.trainedTokens(s) > 0 ? 1 : 0;
        }
        return counted == 0 ? 0.0 : sum / counted;
    }

    private double weighed(Formula formula, float[] current, float[] behavior, float[] reference, int t) {
        double weight = weighted ? Math.min(cap, Math.exp(LogRatio.bounded((double) current[t] - behavior[t]))) : 1;
        return weight * formula.of((double) current[t] - reference[t], weight);
    }

    private void requireLogProbs(TokenBatch batch, float[] current, float[] behavior, float[] reference) {
        batch.requireFinite("current log-probs", current);
        batch.requireFinite("reference log-probs", reference);
        if (weighted) {
            batch.requireFinite("behavior log-probs", behavior);
        }
    }
}
