package dev.millrace.corrections.objective;

import static dev.millrace.corrections.objective.Bounds.atLeastZero;

/**
 * LUSPO: {@link Gspo}'s objective times the sequence's length, {@code ℓ = n · max(−A s, −A clip(s))} with the geometric
 * mean {@code s = exp(mean_t(current_t − anchor_t))} over its n trained tokens.
 *
 * <p>Unit of correction: sequence. GSPO's mean over sequences gives a token of a long answer less, which teaches short
 * answers; times n, every trained token receives {@code −A s} regardless of the length. The factor is a constant. Under
 * {@link LossAggregation.SeqMeanTokenMean}, the paper's, this is GSPO under {@link LossAggregation.SeqMeanTokenSum}.
 * Metrics as {@link PpoClip}; there is no dual clip.
 *
 * <p>Source: arXiv 2602.05261 (abstract only) and its implementation in TRL.
 *
 * @param anchor policy to compare with
 * @param clipRatioLow lower clip: sequence ratio {@code 1 - clip_ratio_low}
 * @param clipRatioHigh upper clip: ratio {@code 1 + clip_ratio_high}
 */
public record Luspo(Anchor anchor, double clipRatioLow, double clipRatioHigh) implements SequenceObjective {
    public Luspo {
        atLeastZero("clip_ratio_low", clipRatioLow);
        atLeastZero("clip_ratio_high", clipRatioHigh);
    }

    /** GSPO's range. */
    public static Luspo defaults() {
        return new Luspo(Anchor.PROXIMAL, 3e-4, 4e-4);
    }

    @Override
    public boolean isPolicyGradientAtAnchor() {
        return false;
    }

    @Override
    public ObjectiveResult evaluate(ObjectiveInput input, UpdateFacts facts) {
        ClippedSurrogate surrogate = new ClippedSurrogate(clipRatioLow, clipRatioHigh);
        return new SequencewiseLoss(input, facts.coefficients(input.batch()))
                .apply(
                        (x, advantage, term) -> {
                            surrogate.apply(Math.exp(x), advantage, term);
                            int length = input.batch().trainedTokens(term.sequence);
                            term.loss *= length;
                            term.derivative *= length;
                        },
                        input.requireProximal("LUSPO"))
                .withClipMetrics();
    }
}
