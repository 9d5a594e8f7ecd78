/**
 * Which loss a step minimises, as configuration: one type per objective of {@code dev.millrace.corrections.objective}, so
 * that a threshold exists only where it applies. The mathematics is the corrections' own.
 */
@NullMarked
package dev.millrace.learner.objective;

import org.jspecify.annotations.NullMarked;
