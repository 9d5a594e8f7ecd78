/**
 * R²VPO: a penalty on the variance of the ratio in the place of clipping, with a multiplier that adapts to a budget.
 *
 * <p>Source: Luo et al., <i>Ratio-Variance Regularized Policy Optimization</i>, arXiv 2601.03320 and 2605.26784. What
 * is published leaves open whether the variance is taken about the batch's mean ratio or about its expectation, and
 * on which unit; here it is about 1, which is the expectation under the sampler, and over tokens.
 */
@NullMarked
package dev.millrace.corrections.r2vpo;

import org.jspecify.annotations.NullMarked;
