/**
 * Parameters and gradients as named float32 tensors.
 *
 * <p>Order of iteration is always that of {@link dev.millrace.policy.decoder.DecoderShape#tensors()}. One owner writes;
 * to share tensors with another thread, share a copy.
 */
@NullMarked
package dev.millrace.policy.weights;

import org.jspecify.annotations.NullMarked;
