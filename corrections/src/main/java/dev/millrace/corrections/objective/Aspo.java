package dev.millrace.corrections.objective;

import static dev.millrace.corrections.objective.Bounds.positive;

import dev.millrace.corrections.ratio.LogRatio;

/**
 * ASPO: the policy gradient {@code ℓ = −sg[w] A log π} with {@code w = min(1 / rho, cap)} for positive and
 * {@code min(rho, cap)} for negative advantages, masked where PPO would clip; rho is current / behavior.
 *
 * <p>For a token that is to become more likely, the plain ratio is largest where it already is likely and smallest
 * where there is most to gain; the flipped ratio turns that round. What PPO's clipping stops stays stopped, by the
 * unflipped ratio: {@code rho > 1 + high} for positive, {@code rho < 1 - low} for negative advantages. The cap is
 * soft: it bounds the weight and lets the gradient pass.
 *
 * <p>Unit of correction: token. The derivative is {@code −w A}. Metrics: approximate KL to the behavior policy.
 *
 * <p>Source: Wang et al., <i>ASPO</i>, arXiv 2510.06062; its flipped ratio is a product whose gradient is
 * {@code 1 / rho} times that of the log-prob, which is the weight here. The paper motivates the cap by flipped ratios;
 * here one cap holds for both signs.
 *
 * @param clipRatioLow clip range below 1; below 1
 * @param clipRatioHigh clip range above 1
 * @param cap largest weight
 */
public record Aspo(double clipRatioLow, double clipRatioHigh, double cap) implements BehaviorObjective {
    public Aspo {
        if (!(clipRatioLow > 0 && clipRatioLow < 1)) {
            throw new IllegalArgumentException("clip_ratio_low must be above 0 and below 1: " + clipRatioLow);
        }
        positive("clip_ratio_high", clipRatioHigh);
        if (!(cap >= 1 && cap < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException("cap must be at least 1 and finite: " + cap);
        }
    }

    public static Aspo defaults() {
        return new Aspo(0.2, 0.2, 3);
    }

    @Override
    public ObjectiveResult evaluate(ObjectiveInput input, UpdateFacts facts) {
        double logClipLower = Math.log1p(-clipRatioLow);
        double logClipUpper = Math.log1p(clipRatioHigh);
        double logCap = Math.log(cap);
        return SignedWeights.perToken(
                (logRatio, up) -> (up ? logRatio > logClipUpper : logRatio < logClipLower)
                        ? 0.0
                        : Math.exp(LogRatio.bounded(Math.min(up ? -logRatio : logRatio, logCap))),
                input,
                facts);
    }
}
