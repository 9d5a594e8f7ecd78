package dev.millrace.corrections.objective;

import dev.millrace.corrections.TokenBatch;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * Solves one {@link QueryTrustRegion} per prompt, and gives each sequence the factor its gradient has under it.
 *
 * <p>A prompt whose answers differ much in advantage gets a large multiplier and a damped update; one whose answers
 * are nearly equal keeps its full step. A global clip range does neither.
 *
 * <p>Unit: group. Sequences without a trained token take no part. Immutable and thread-safe.
 *
 * @param budget KL(current || sampler) allowed per prompt, in nats, on the distribution of whole answers; positive
 * @param smallestMultiplier the multiplier where the constraint does not bind, and the least one otherwise; positive
 */
public record QueryMultipliers(double budget, double smallestMultiplier) {
    private static final int BISECTIONS = 200;

    public QueryMultipliers {
        if (!(budget > 0.0 && budget < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException("budget must be positive and finite: budget=" + budget);
        }
        if (!(smallestMultiplier > 0.0 && smallestMultiplier < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException(
                    "smallestMultiplier must be positive and finite: smallestMultiplier=" + smallestMultiplier);
        }
    }

    /**
     * The trust region of one prompt.
     *
     * @param advantages of its answers, at least one, finite
     */
    public QueryTrustRegion solve(double[] advantages) {
        if (advantages.length == 0) {
            throw new IllegalArgumentException("a prompt needs at least one answer");
        }
        double best = Double.NEGATIVE_INFINITY;
        double worst = Double.POSITIVE_INFINITY;
        for (int i = 0; i < advantages.length; i++) {
            if (!Double.isFinite(advantages[i])) {
                throw new IllegalArgumentException(
                        "an advantage must be finite: answer=" + i + ", advantage=" + advantages[i]);
            }
            best = Math.max(best, advantages[i]);
            worst = Math.min(worst, advantages[i]);
        }
        if (kl(advantages, best, smallestMultiplier) <= budget) {
            return region(advantages, best, smallestMultiplier, false);
        }
        // the KL falls as the multiplier grows, and is at most (range / multiplier)^2 / 8: within the budget at the top
        double low = smallestMultiplier;
        double high = Math.max(low, (best - worst) / Math.sqrt(8.0 * budget));
        for (int i = 0; i < BISECTIONS && low < high; i++) {
            double middle = low + (high - low) / 2.0;
            if (kl(advantages, best, middle) > budget) {
                low = middle == low ? high : middle;
            } else {
                high = middle == high ? low : middle;
            }
        }
        return region(advantages, best, high, true);
    }

    /**
     * The trust region of every group.
     *
     * @param advantages one per sequence; those without a trained token are not looked at
     * @return one per group index of the batch, null for groups without a trained token
     */
    public @Nullable QueryTrustRegion[] solve(TokenBatch batch, double[] advantages) {
        double[][] perGroup = new double[batch.groupCount()][0];
        for (int s = 0; s < batch.sequenceCount(); s++) {
            if (batch.trainedTokens(s) > 0) {
                double[] group = perGroup[batch.group(s)];
                perGroup[batch.group(s)] = Arrays.copyOf(group, group.length + 1);
                perGroup[batch.group(s)][group.length] = advantages[s];
            }
        }
        @Nullable QueryTrustRegion[] regions = new @Nullable QueryTrustRegion[perGroup.length];
        for (int g = 0; g < regions.length; g++) {
            regions[g] = perGroup[g].length == 0 ? null : solve(perGroup[g]);
        }
        return regions;
    }

    private static QueryTrustRegion region(double[] advantages, double best, double multiplier, boolean binds) {
        double offset = best + multiplier * Math.log(meanExp(advantages, best, multiplier));
        return new QueryTrustRegion(multiplier, offset, kl(advantages, best, multiplier), binds);
    }

    /** {@code mean exp((A - best) / multiplier)}, in (0, 1]. */
    private static double meanExp(double[] advantages, double best, double multiplier) {
        double sum = 0.0;
        for (double advantage : advantages) {
            sum += Math.exp((advantage - best) / multiplier);
        }
        return sum / advantages.length;
    }

    /** {@code mean(rho log rho)} of the solution at this multiplier. */
    private static double kl(double[] advantages, double best, double multiplier) {
        double logMean = Math.log(meanExp(advantages, best, multiplier));
        double sum = 0.0;
        for (double advantage : advantages) {
            double logRatio = (advantage - best) / multiplier - logMean;
            sum += Math.exp(logRatio) * logRatio;
        }
        return Math.max(0.0, sum / advantages.length);
    }
}
