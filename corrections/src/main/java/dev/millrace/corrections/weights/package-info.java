/**
 * Importance weights: how much a token counts, given how much more or less likely the target policy finds it than the
 * policy that sampled it.
 *
 * <p>Every method is a class with one {@link dev.millrace.corrections.weights.WeightMethod#unit() unit} and one bound.
 * Which ratio it acts on is the caller's choice and part of the argument's type. Bounds are compared in log space, so a
 * weight is truncated if and only if its log ratio exceeds the log of the bound; ratios are bounded to
 * {@code e^-20 .. e^20} in every method.
 */
@NullMarked
package dev.millrace.corrections.weights;

import org.jspecify.annotations.NullMarked;
