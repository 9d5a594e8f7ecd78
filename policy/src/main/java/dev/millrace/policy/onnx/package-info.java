/**
 * Writes ONNX graphs: values with symbolic shapes, operators that check theirs, loops.
 *
 * <p>Independent of decoders. The messages under {@code proto} are generated from {@code onnx.proto}, the used part of
 * the public format. Weights are inputs of a model, never inside it.
 */
@NullMarked
package dev.millrace.policy.onnx;

import org.jspecify.annotations.NullMarked;
