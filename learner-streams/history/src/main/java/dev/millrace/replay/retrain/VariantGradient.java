package dev.millrace.replay.retrain;

/**
 * The gradient of a recorded batch under one variant, at the weights that the recorded step began with; a number that there is
 * not is NaN. The gradient is of the loss, so the direction that it would step in is its opposite.
 *
 * <p>The last two are of the lemma of stochastic gradient ascent: for an L-smooth reward J, a step μ ĝ gains at least
 * {@code μ⟨g, E ĝ⟩ − (L μ²/2) E‖ĝ‖²}, g being the true gradient. What ĝ has of g (bias, the first term) and what it costs
 * (variance, the second) decide it together: at the best μ the bound is {@code ⟨g, E ĝ⟩² / (2 L E‖ĝ‖²)}. Source: Y. Li and
 * J. Liu, "Why Off-Policy Breaks RL: An SGA Analysis Framework" (2025, richardli.xyz/post/rl-collapse-part1). Here g is
 * the on-policy reference and the expectations are what this batch shows of them.
 *
 * @param norm of it, before clipping
 * @param cosineToUpdate of the opposite of the gradient to what the run did to its weights at this step; AdamW's momentum and
 *     its scale of each parameter are in the latter, so 1 is not to be expected of the run's own variant either
 * @param cosineToReference to the on-policy gradient
 * @param signal unbiased estimate of the squared norm of the expected gradient: {@code ‖ĝ‖² − noise}
 * @param noise variance of ĝ, from the norms of its sequences' parts
 * @param alignment {@code ⟨g, ĝ⟩ / ‖g‖²}: 1 without bias, below 0 in the wrong direction
 * @param sgaProgress {@code ±⟨g, ĝ⟩² / (‖g‖² ‖ĝ‖²)} with the sign of the product: the lemma's bound at its best step as a share
 *     of the true gradient's
 * @param tokensTrained tokens that the variant trains on
 * @param essRatio effective sample size of the raw sequence weights
 * @param stepScale factor on the learning rate that the variant asks for
 */
public record VariantGradient(
        double norm,
        double cosineToUpdate,
        double cosineToReference,
        double signal,
        double noise,
        double alignment,
        double sgaProgress,
        long tokensTrained,
        double essRatio,
        double stepScale) {}
