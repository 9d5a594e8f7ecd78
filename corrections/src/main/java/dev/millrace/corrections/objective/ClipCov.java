package dev.millrace.corrections.objective;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.TokenBatch;
import java.util.BitSet;
import java.util.SplittableRandom;

/**
 * Clip-Cov: PPO's clipped surrogate (without dual clip), silenced on a few tokens whose covariance of advantage and
 * log-prob lies in a band.
 *
 * <p>Unit of correction: token. Candidates are trained tokens that PPO does not clip and whose {@code (A − mean A)(log
 * π − mean log π)} lies strictly between the bounds; of them at most {@code max(1, ⌊share · trained tokens⌋)} are drawn
 * at random, without replacement, and their loss and derivative are 0. The others have PPO's. The log ratio is not
 * bounded. Metrics: approximate KL; the clipped fraction counts the silenced tokens only, as in verl.
 *
 * <p>The draw depends on the seed and the candidates' order, nothing else: pass the step as seed, and a replay draws
 * the same.
 *
 * <p>Source: Cui et al. 2025, "The Entropy Mechanism of Reinforcement Learning" (arXiv 2505.22617).
 */
public final class ClipCov implements Objective {
    /** verl's default share. */
    public static final double DEFAULT_SHARE = 0.0002;
    /** verl's default lower bound of the covariance. */
    public static final double DEFAULT_LOW = 1.0;
    /** verl's default upper bound of the covariance. */
    public static final double DEFAULT_HIGH = 5.0;

    private final ClipRange range;
    private final ClippedSurrogate surrogate;
    private final double share;
    private final double low;
    private final double high;
    private final long seed;
    private final LossAggregation aggregation;

    /**
     * @param share of the trained tokens that may be silenced; positive
     * @param low covariance above which a token is a candidate
     * @param high covariance below which it is one
     * @param seed of the draw where there are more candidates than places
     */
    public ClipCov(ClipRange range, double share, double low, double high, long seed, LossAggregation aggregation) {
        if (!(share > 0 && share < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException("the share of silenced tokens must be positive and finite: " + share);
        }
        if (!(low <= high)) {
            throw new IllegalArgumentException("the band of covariances is empty: low=" + low + ", high=" + high);
        }
        this.range = range;
        this.surrogate = new ClippedSurrogate(range, Double.POSITIVE_INFINITY);
        this.share = share;
        this.low = low;
        this.high = high;
        this.seed = seed;
        this.aggregation = aggregation;
    }

    @Override
    public CorrectionUnit unit() {
        return CorrectionUnit.TOKEN;
    }

    @Override
    public ObjectiveResult evaluate(ObjectiveInput input) {
        float[] proximal = input.requireProximal("Clip-Cov");
        BitSet silenced = silenced(input, proximal);
        TokenRule rule = (current, anchor, advantage, term) -> {
            term.logRatio = current - anchor;
            term.clipped = silenced.get(term.token);
            if (!term.clipped) {
                surrogate.apply(Math.exp(term.logRatio), advantage, term);
                term.clipped = false; // PPO's own clipping is not what this objective's metric counts
            }
        };
        return new TokenwiseLoss(input, aggregation).apply(rule, proximal).withClippedFraction();
    }

    private BitSet silenced(ObjectiveInput input, float[] proximal) {
        TokenBatch batch = input.batch();
        TokenCovariance covariance = new TokenCovariance(input);
        long places = Math.max(1, (long) (share * batch.trainedTokens()));
        int[] drawn = new int[(int) Math.min(places, batch.trainedTokens())];
        SplittableRandom random = new SplittableRandom(seed);
        int candidates = 0;
        for (int t = 0; t < batch.tokenCount(); t++) {
            if (batch.isTrained(t) && isCandidate(input, proximal, covariance, t)) {
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

    private boolean isCandidate(ObjectiveInput input, float[] proximal, TokenCovariance covariance, int t) {
        double ratio = Math.exp((double) input.current()[t] - proximal[t]);
        double advantage = input.advantages()[t];
        boolean clippedByPpo = -advantage * range.clip(ratio) > -advantage * ratio;
        double c = covariance.of(t);
        return !clippedByPpo && c > low && c < high;
    }
}
