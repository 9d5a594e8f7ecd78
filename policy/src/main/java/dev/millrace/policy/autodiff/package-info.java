/**
 * Reverse-mode differentiation of ONNX graphs: one rule per operator and one walk, both in
 * {@link dev.millrace.policy.autodiff.ReverseMode}. What is emitted is ordinary ONNX again.
 */
@NullMarked
package dev.millrace.policy.autodiff;

import org.jspecify.annotations.NullMarked;
