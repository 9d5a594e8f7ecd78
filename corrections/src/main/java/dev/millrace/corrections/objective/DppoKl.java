package dev.millrace.corrections.objective;

import static dev.millrace.corrections.objective.Bounds.atLeastZero;
import static dev.millrace.corrections.objective.Bounds.positive;

/**
 * DPPO with a Kullback-Leibler trust region. Per token {@code ℓ = −A · sg[min(r, c)] · sg[M] · log π}.
 * {@code M = 0} once {@code KL = p log(p/π) + (1−p) log((1−p)/(1−π))}, the two-outcome divergence with {@code p = π_prox},
 * exceeds its bound in the direction of the advantage.
 *
 * <p>Unit of correction: token. As {@link DppoTv} with another distance: {@code M = 0} if {@code A > 0}, {@code KL >
 * high} and {@code π > p}. It is also 0 if {@code A <= 0}, {@code KL > low} and {@code π < p}. 1e-8 is added to both
 * complements, so that a certain token has a finite divergence. Metrics as {@link DppoTv}.
 *
 * <p>Source: arXiv 2602.04879, "binary KL".
 *
 * @param anchor policy to compare with
 * @param clipRatioLow largest divergence downwards with a gradient, in nats
 * @param clipRatioHigh largest divergence upwards with a gradient, in nats
 * @param clipRatioC largest ratio that weighs a token
 */
public record DppoKl(Anchor anchor, double clipRatioLow, double clipRatioHigh, double clipRatioC) implements Objective {
    private static final double COMPLEMENT_FLOOR = 1e-8;

    public DppoKl {
        atLeastZero("clip_ratio_low", clipRatioLow);
        atLeastZero("clip_ratio_high", clipRatioHigh);
        positive("clip_ratio_c", clipRatioC);
    }

    public static DppoKl defaults() {
        return new DppoKl(Anchor.PROXIMAL, 0.05, 0.05, DppoTv.DEFAULT_TRUNCATION);
    }

    @Override
    public ObjectiveResult evaluate(ObjectiveInput input, UpdateFacts facts) {
        return new TokenwiseLoss(input, facts.coefficients(input.batch()))
                .apply(this::token, input.requireProximal("DPPO-KL"))
                .withClipMetrics();
    }

    private void token(double current, double proximal, double advantage, TokenTerm term) {
        double probability = Math.exp(current);
        double before = Math.exp(proximal);
        double divergence = before * (proximal - current)
                + (1 - before) * Math.log((1 - before + COMPLEMENT_FLOOR) / (1 - probability + COMPLEMENT_FLOOR));
        boolean inside = advantage > 0
                ? divergence <= clipRatioHigh || probability <= before
                : divergence <= clipRatioLow || probability >= before;
        DppoTv.maskedPolicyGradient(current, proximal, advantage, inside, clipRatioC, term);
    }
}
