package dev.millrace.replay.retrain;

/**
 * Gradient of a recorded batch under a variant at the step's start weights. Absent numbers are NaN. It is the gradient
 * of the loss; steps go in the opposite direction.
 *
 * <p>For an L-smooth reward J a step μ ĝ gains at least {@code μ⟨g, E ĝ⟩ − (L μ²/2) E‖ĝ‖²}, with g the true gradient.
 * At the best μ that is {@code ⟨g, E ĝ⟩² / (2 L E‖ĝ‖²)}. Source: Y. Li and J. Liu, "Why Off-Policy Breaks RL: An SGA
 * Analysis Framework" (2025, richardli.xyz/post/rl-collapse-part1). Here g is the on-policy reference, and expectations
 * are this batch's.
 *
 * @param norm before clipping
 * @param cosineToUpdate of the step direction to the recorded update; momentum and scaling of AdamW keep it below 1
 *     for the run's own variant too
 * @param essRatio of raw sequence weights
 * @param stepScale factor on the learning rate
 */
public record VariantGradient(
        double norm,
        double cosineToUpdate,
        double cosineToReference,
        Sga sga,
        long tokensTrained,
        double essRatio,
        double stepScale) {
    /**
     * Terms of the bound.
     *
     * @param signal unbiased squared norm of the expected gradient: {@code ‖ĝ‖² − noise}
     * @param noise variance of ĝ, from its sequences' parts
     * @param alignment {@code ⟨g, ĝ⟩ / ‖g‖²}: 1 without bias, below 0 in the wrong direction
     * @param progress {@code ±⟨g, ĝ⟩² / (‖g‖² ‖ĝ‖²)} with the sign of the product: the bound at the best step as a
     *     share of the true gradient's
     */
    public record Sga(double signal, double noise, double alignment, double progress) {}
}
