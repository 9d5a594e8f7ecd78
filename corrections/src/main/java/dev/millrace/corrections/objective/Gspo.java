package dev.millrace.corrections.objective;

import static dev.millrace.corrections.objective.Bounds.aboveOne;
import static dev.millrace.corrections.objective.Bounds.atLeastZero;

/**
 * GSPO: PPO's clipped surrogate of the sequence's ratio, {@code ℓ = max(−A s, −A clip(s))} with the geometric mean
 * {@code s = exp(mean_t(current_t − anchor_t))}.
 *
 * <p>Unit of correction: sequence; a sequence is clipped as a whole. The reward judges the sequence, so the ratio that
 * corrects for it is the sequence's; the root keeps long answers on the scale of short ones. The gradient flows through
 * {@code s}: every trained token receives {@code −A s / n}. The advantage is the mean over the sequence's trained
 * tokens, its weight the sum of theirs under the aggregation's coefficient; with {@link
 * LossAggregation.SeqMeanTokenMean}, the paper's, that is the mean weight. The clip range must be far narrower than
 * PPO's (3e-4 and 4e-4 in the paper). Metrics as {@link PpoClip}.
 *
 * <p>Source: Zheng et al. 2025 (arXiv 2507.18071), which has no dual clip. AReaL's {@code importance_sampling_level:
 * sequence} is this with a token mean.
 *
 * @param anchor policy to compare with
 * @param clipRatioLow lower clip: sequence ratio {@code 1 - clip_ratio_low}
 * @param clipRatioHigh upper clip: ratio {@code 1 + clip_ratio_high}
 * @param clipRatioC largest ratio at a negative advantage, above 1
 */
public record Gspo(Anchor anchor, double clipRatioLow, double clipRatioHigh, double clipRatioC)
        implements SequenceObjective {
    public Gspo {
        atLeastZero("clip_ratio_low", clipRatioLow);
        atLeastZero("clip_ratio_high", clipRatioHigh);
        aboveOne("clip_ratio_c", clipRatioC);
    }

    public static Gspo defaults() {
        return new Gspo(Anchor.PROXIMAL, 3e-4, 4e-4, PpoClip.DEFAULT_CLIP_RATIO_C);
    }

    @Override
    public ObjectiveResult evaluate(ObjectiveInput input, UpdateFacts facts) {
        ClippedSurrogate surrogate = new ClippedSurrogate(clipRatioLow, clipRatioHigh, clipRatioC);
        return new SequencewiseLoss(input, facts.coefficients(input.batch()))
                .apply(
                        (x, advantage, term) -> surrogate.apply(Math.exp(x), advantage, term),
                        input.requireProximal("GSPO"))
                .withClipMetrics();
    }
}
