/**
 * Stages, and a batch that passes through a list of them.
 *
 * <p>A {@link dev.millrace.corrections.stage.Stage} is a record whose components are its settings. The same list runs at batch
 * assembly, at step start, in a replay, and over a file of sequences.
 */
@NullMarked
package dev.millrace.corrections.stage;

import org.jspecify.annotations.NullMarked;
