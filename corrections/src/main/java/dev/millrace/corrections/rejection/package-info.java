/**
 * Rejection of tokens and sequences by the divergence between target and sampler: verl's eleven modes.
 */
@NullMarked
package dev.millrace.corrections.rejection;

import org.jspecify.annotations.NullMarked;
