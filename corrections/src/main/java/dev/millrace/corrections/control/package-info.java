/**
 * What makes a step smaller than the schedule says, from what a batch looks like. Controls are constants of a step: nothing
 * is differentiated through them; each writes what it saw and did into the training log, and what it remembers is part of
 * the version.
 */
@NullMarked
package dev.millrace.corrections.control;

import org.jspecify.annotations.NullMarked;
