/**
 * The decoder as a description ({@link dev.millrace.policy.decoder.DecoderShape}) and the graphs that follow from it: whole
 * sequences with or without gradient ({@link dev.millrace.policy.decoder.SequenceGraph}) and the token loop
 * ({@link dev.millrace.policy.decoder.DecodeGraph}). Layers are written once, in {@code Transformer}; only attention
 * differs.
 */
@NullMarked
package dev.millrace.policy.decoder;

import org.jspecify.annotations.NullMarked;
