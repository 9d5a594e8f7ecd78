/**
 * One decision over a batch, and the batch on its way through a list of them.
 *
 * <p>A {@link dev.millrace.corrections.stage.Stage} is a record whose components are its settings. The same list of stages runs
 * where a batch is formed, where a step starts, where a recorded batch is decided about again, and over vectors in a file.
 */
@NullMarked
package dev.millrace.corrections.stage;

import org.jspecify.annotations.NullMarked;
