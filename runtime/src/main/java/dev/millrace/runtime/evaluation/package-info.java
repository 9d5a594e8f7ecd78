/** Evaluates a run's policy on held-out prompts, and measures its distance from the initial model. */
@NullMarked
package dev.millrace.runtime.evaluation;

import org.jspecify.annotations.NullMarked;
