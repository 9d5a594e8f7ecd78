package dev.millrace.corrections.length;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.stage.RewardStage;
import dev.millrace.corrections.stage.StageBatch;
import dev.millrace.corrections.stage.StageOutcome;
import dev.millrace.corrections.stage.StageSettings;
import java.util.Map;

/**
 * Reports how often one of k samples would be correct, by the groups of a batch; rewards stay unchanged.
 *
 * <p>{@code pass_at_k} is unbiased, over the groups that have at least k samples, and absent if no group has.
 * {@code pass_at_k_bernoulli} uses each group's observed share of successes. {@code pass_at_k_beta_binomial} fits a
 * distribution to the shares first; it is absent where all or no samples are correct, or no fit is best. Both
 * extrapolate beyond the samples taken, see {@link BernoulliExtrapolation} and {@link BetaBinomialFit}.
 *
 * <p>Unit: batch.
 *
 * @param k samples, at least 1
 * @param correctAbove reward above which a sequence is correct; finite
 */
public record PassAtKFigure(int k, double correctAbove) implements RewardStage {
    public PassAtKFigure {
        if (k < 1) {
            throw new IllegalArgumentException("k must be at least 1: " + k);
        }
        LengthPenaltyInput.requireFinite("correct_above", correctAbove);
    }

    /** Of 16; correct is what is rewarded with more than a half. */
    public static PassAtKFigure defaults() {
        return new PassAtKFigure(16, 0.5);
    }

    @Override
    public String name() {
        return "pass_at_k";
    }

    @Override
    public CorrectionUnit unit() {
        return CorrectionUnit.BATCH;
    }

    @Override
    public StageOutcome apply(StageBatch batch) {
        TokenBatch tokens = batch.facts().tokens();
        long[] samples = new long[tokens.groupCount()];
        long[] correct = new long[tokens.groupCount()];
        for (int s = 0; s < tokens.sequenceCount(); s++) {
            samples[tokens.group(s)]++;
            correct[tokens.group(s)] += batch.facts().rewards()[s] > correctAbove ? 1 : 0;
        }
        Map<String, Double> values = StageSettings.of(this);
        double unbiased = 0;
        double bernoulli = 0;
        int large = 0;
        int groups = 0;
        boolean anyPair = false;
        long solved = 0;
        long all = 0;
        for (int g = 0; g < samples.length; g++) {
            if (samples[g] > 0) {
                groups++;
                anyPair |= samples[g] > 1;
                solved += correct[g];
                all += samples[g];
                bernoulli += BernoulliExtrapolation.passAtK(samples[g], correct[g], k);
                if (samples[g] >= k) {
                    large++;
                    unbiased += PassAtK.unbiased(samples[g], correct[g], k);
                }
            }
        }
        if (large > 0) {
            values.put("pass_at_k", unbiased / large);
        }
        if (groups > 0) {
            values.put("pass_at_k_bernoulli", bernoulli / groups);
        }
        if (anyPair && solved > 0 && solved < all && groups == samples.length) {
            try {
                values.put(
                        "pass_at_k_beta_binomial",
                        BetaBinomialFit.of(samples, correct).passAtK(k));
            } catch (ArithmeticException noOptimum) {
                values.put("beta_binomial_has_no_optimum", 1.0);
            }
        }
        return batch.observed(this, values);
    }
}
