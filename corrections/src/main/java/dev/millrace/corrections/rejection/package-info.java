/**
 * Rejection of tokens and sequences by the divergence between target and sampler: verl's eleven modes.
 */
package dev.millrace.corrections.rejection;
