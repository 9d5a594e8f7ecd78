/** Patches of an algorithm tried on the recorded batches of a run. */
@NullMarked
package dev.millrace.replay.trial;

import org.jspecify.annotations.NullMarked;
