/**
 * Writes ONNX graphs: values with symbolic shapes, operators that check theirs, loops.
 *
 * <p>Knows nothing of decoders. The messages under {@code proto} are generated from {@code onnx.proto}, the part of the
 * public format that is used here; weights are never inside a model, they are its inputs.
 */
@NullMarked
package dev.millrace.policy.onnx;

import org.jspecify.annotations.NullMarked;
