package dev.millrace.corrections.objective;

import static dev.millrace.corrections.objective.Bounds.aboveOne;
import static dev.millrace.corrections.objective.Bounds.atLeastZero;

/**
 * Decoupled PPO: the clipped surrogate around the proximal policy, under importance weights of how far that one is from
 * the policy that sampled: {@code ℓ = sg[w(proximal / behavior)] · clip surrogate(exp(current − proximal), A)}.
 *
 * <p>Unit of correction: token for the clip, that of the weights for them. The trust region is thus around a recent
 * policy although the data are old. The weights are the input's and constant in the derivative; without any, nothing
 * corrects for age. Metrics as {@link PpoClip}.
 *
 * <p>Source: Hilton et al. 2022 (arXiv 2110.00641); Fu et al. 2025, AReaL (arXiv 2505.24298). AReaL drops tokens whose
 * weight is above its cap; dropping is a mask's business here, truncating one of the weights.
 *
 * @param clipRatioLow lower clip: ratio {@code 1 - clip_ratio_low}
 * @param clipRatioHigh upper clip: ratio {@code 1 + clip_ratio_high}
 * @param clipRatioC largest ratio at a negative advantage, above 1
 */
public record DecoupledPpo(double clipRatioLow, double clipRatioHigh, double clipRatioC) implements Objective {
    public DecoupledPpo {
        atLeastZero("clip_ratio_low", clipRatioLow);
        atLeastZero("clip_ratio_high", clipRatioHigh);
        aboveOne("clip_ratio_c", clipRatioC);
    }

    public static DecoupledPpo defaults() {
        return new DecoupledPpo(0.2, 0.2, PpoClip.DEFAULT_CLIP_RATIO_C);
    }

    @Override
    public ObjectiveResult evaluate(ObjectiveInput input, UpdateFacts facts) {
        return new PpoClip(Anchor.PROXIMAL, clipRatioLow, clipRatioHigh, clipRatioC).evaluate(input, facts);
    }
}
