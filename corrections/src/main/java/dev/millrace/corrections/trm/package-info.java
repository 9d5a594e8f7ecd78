/**
 * Trust Region Masking: sequences in which the current policy left the trust region at any token get no gradient, and
 * the bounds on the surrogate's error that motivate it.
 *
 * <p>Why sequences: the error of the surrogate objective is bounded through the largest divergence of any token, and
 * masking or clipping single tokens leaves that divergence where it is. A learner divides the loss by the sequences, or
 * trained tokens, that reached the mask, rejected ones included: dividing by the accepted ones would raise the step
 * exactly when few sequences can be trusted.
 *
 * <p>Source: Li et al., <i>Trust Region Masking for Long-Horizon LLM Reinforcement Learning</i>, arXiv 2512.23075.
 * Its rollout policy is our behavior policy, its trained policy our current (or, when a batch is formed, proximal)
 * one; divergences are KL(behavior || current).
 */
@NullMarked
package dev.millrace.corrections.trm;

import org.jspecify.annotations.NullMarked;
