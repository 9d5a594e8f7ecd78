package dev.millrace.corrections.filter;

import dev.millrace.corrections.ratio.LogRatio;
import dev.millrace.corrections.ratio.RatioKind;
import dev.millrace.corrections.stage.RatioMask;
import dev.millrace.corrections.stage.StageBatch;
import dev.millrace.corrections.stage.StageOutcome;
import dev.millrace.corrections.stage.StageSettings;

/**
 * Double-sided importance sampling's mask: a token of
 * {@code rho < 1 - clip_ratio_low or rho > 1 + clip_ratio_high} is dropped, regardless of the sign of its advantage.
 *
 * <p>Unlike a band of weights it also takes the token out of every denominator; kept tokens keep their weights. A
 * clipped objective keeps tokens that move back into its range; this mask drops them too.
 *
 * <p>Unit: token. Source: SAO, arXiv 2607.07508 (abstract only); prime-rl pull request 2423.
 *
 * @param clipRatioLow lowest ratio is 1 less this, in (0, 1)
 * @param clipRatioHigh highest ratio is 1 plus this, positive, finite
 */
public record DoubleSidedMask(double clipRatioLow, double clipRatioHigh) implements RatioMask {
    public DoubleSidedMask {
        if (!(clipRatioLow > 0 && clipRatioLow < 1)) {
            throw new IllegalArgumentException("clip_ratio_low must be in (0, 1): " + clipRatioLow);
        }
        if (!(clipRatioHigh > 0 && clipRatioHigh < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException("clip_ratio_high must be positive and finite: " + clipRatioHigh);
        }
    }

    /** 0.2 below, 0.28 above. */
    public static DoubleSidedMask defaults() {
        return new DoubleSidedMask(0.2, 0.28);
    }

    @Override
    public String name() {
        return "dis";
    }

    @Override
    public StageOutcome apply(StageBatch batch) {
        LogRatio ratio = batch.facts().ratio(RatioKind.ANCHOR);
        double lower = Math.log1p(-clipRatioLow);
        double upper = Math.log1p(clipRatioHigh);
        byte[] keep = TokenCondition.mask(batch.left(), ratio, (pi, mu) -> pi - mu >= lower && pi - mu <= upper);
        return batch.mask(this, keep, StageSettings.of(this));
    }
}
