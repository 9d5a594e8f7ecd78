/**
 * Shows a run while it goes, in place on a terminal or as lines. It reads meters and the training log and has no part in
 * the run: a view that fails is not a run that fails.
 */
@NullMarked
package dev.millrace.runtime.live;

import org.jspecify.annotations.NullMarked;
