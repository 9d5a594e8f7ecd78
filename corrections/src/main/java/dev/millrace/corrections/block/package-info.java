/**
 * Arithmetic over a few hundred trained tokens at a time, in loops that the compiler vectorises: what every pass over a batch
 * that has to be fast is made of. Sums have a fixed order, so equal tokens give equal bits on every machine.
 */
@NullMarked
package dev.millrace.corrections.block;

import org.jspecify.annotations.NullMarked;
