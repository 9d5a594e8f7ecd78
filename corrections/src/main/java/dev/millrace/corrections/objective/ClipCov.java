package dev.millrace.corrections.objective;

import static dev.millrace.corrections.objective.Bounds.atLeastZero;
import static dev.millrace.corrections.objective.Bounds.inUnit;

import dev.millrace.corrections.TokenBatch;
import java.util.BitSet;
import java.util.SplittableRandom;

/**
 * Clip-Cov: PPO's clipped surrogate (without dual clip), silenced on a few tokens whose covariance of advantage and
 * log-prob lies in a band: {@code ℓ = sg[M] · max(−A r, −A clip(r, 1−ε_low, 1+ε_high))}.
 *
 * <p>Unit of correction: token. Candidates are trained tokens that PPO does not clip and whose {@code (A − mean A)(log
 * π − mean log π)} lies strictly between the bounds; of them at most {@code max(1, ⌊share · trained tokens⌋)} are drawn
 * at random, without replacement, and their loss and derivative are 0. The others have PPO's. The log ratio is not
 * bounded. Metrics: approximate KL; the clipped fraction counts the silenced tokens only, as in verl.
 *
 * <p>The draw depends on the optimizer's step and the candidates' order, nothing else: a replay draws the same.
 *
 * <p>Source: Cui et al. 2025, "The Entropy Mechanism of Reinforcement Learning" (arXiv 2505.22617).
 *
 * @param anchor policy to compare with
 * @param clipRatioLow lower clip: ratio {@code 1 - clip_ratio_low}
 * @param clipRatioHigh upper clip: ratio {@code 1 + clip_ratio_high}
 * @param clipCovRatio largest share of clipped tokens
 * @param clipCovLb lower bound of a candidate's covariance
 * @param clipCovUb upper bound of a candidate's covariance
 */
public record ClipCov(
        Anchor anchor,
        double clipRatioLow,
        double clipRatioHigh,
        double clipCovRatio,
        double clipCovLb,
        double clipCovUb)
        implements Objective {
    /** verl's default share. */
    public static final double DEFAULT_SHARE = 0.0002;
    /** verl's default lower bound of the covariance. */
    public static final double DEFAULT_LOW = 1.0;
    /** verl's default upper bound of the covariance. */
    public static final double DEFAULT_HIGH = 5.0;

    public ClipCov {
        atLeastZero("clip_ratio_low", clipRatioLow);
        atLeastZero("clip_ratio_high", clipRatioHigh);
        inUnit("clip_cov_ratio", clipCovRatio);
        if (!(clipCovLb < clipCovUb)) {
            throw new IllegalArgumentException("clip_cov_lb must be below clip_cov_ub=" + clipCovUb + ": " + clipCovLb);
        }
    }

    public static ClipCov defaults() {
        return new ClipCov(Anchor.PROXIMAL, 0.2, 0.2, DEFAULT_SHARE, DEFAULT_LOW, DEFAULT_HIGH);
    }

    @Override
    public boolean isPolicyGradientAtAnchor() {
        return false;
    }

    @Override
    public ObjectiveResult evaluate(ObjectiveInput input, UpdateFacts facts) {
        float[] proximal = input.requireProximal("Clip-Cov");
        ClippedSurrogate surrogate = new ClippedSurrogate(clipRatioLow, clipRatioHigh);
        BitSet silenced = silenced(input, proximal, surrogate, facts.optimizerSteps());
        TokenRule rule = (current, anchor, advantage, term) -> {
            term.logRatio = current - anchor;
            term.clipped = silenced.get(term.token);
            if (!term.clipped) {
                surrogate.apply(Math.exp(term.logRatio), advantage, term);
                term.acted = term.clipped;
                term.clipped = false; // PPO's own clipping is not what this objective's metric counts
            }
        };
        return new TokenwiseLoss(input, facts.coefficients(input.batch()))
                .apply(rule, proximal)
                .withClippedFraction();
    }

    private BitSet silenced(ObjectiveInput input, float[] proximal, ClippedSurrogate surrogate, long seed) {
        TokenBatch batch = input.batch();
        TokenCovariance covariance = new TokenCovariance(input);
        long places = Math.max(1, (long) (clipCovRatio * batch.trainedTokens()));
        int[] drawn = new int[(int) Math.min(places, batch.trainedTokens())];
        SplittableRandom random = new SplittableRandom(seed);
        int candidates = 0;
        for (int t = 0; t < batch.tokenCount(); t++) {
            if (batch.isTrained(t) && isCandidate(input, proximal, surrogate, covariance, t)) {
                // a reservoir: after n candidates each has had the same chance of a place
                int place = candidates < drawn.length ? candidates : random.nextInt(candidates + 1);
                if (place < drawn.length) {
                    drawn[place] = t;
                }
                candidates++;
            }
        }
        BitSet silenced = new BitSet(batch.tokenCount());
        for (int i = 0; i < Math.min(candidates, drawn.length); i++) {
            silenced.set(drawn[i]);
        }
        return silenced;
    }

    private boolean isCandidate(
            ObjectiveInput input, float[] proximal, ClippedSurrogate surrogate, TokenCovariance covariance, int t) {
        double ratio = Math.exp((double) input.current()[t] - proximal[t]);
        double advantage = input.advantages()[t];
        boolean clippedByPpo = -advantage * surrogate.clip(ratio) > -advantage * ratio;
        double c = covariance.of(t);
        return !clippedByPpo && c > clipCovLb && c < clipCovUb;
    }
}
