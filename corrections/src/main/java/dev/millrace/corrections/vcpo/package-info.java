/**
 * Variance control of VCPO: effective sample size of the sequence weights, the step scale it gives, and the baseline
 * of least variance for off-policy gradients.
 *
 * <p>Source: Huang et al., <i>Stable Asynchrony: Variance-Controlled Off-Policy RL for LLMs</i>, arXiv 2602.17616,
 * and the authors' code at {@code mit-han-lab/vcpo@c7f030f}. Where that code is not followed by default, the class
 * says so.
 */
@NullMarked
package dev.millrace.corrections.vcpo;

import org.jspecify.annotations.NullMarked;
