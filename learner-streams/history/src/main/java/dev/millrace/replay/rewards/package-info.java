/** Recorded rollouts under other rewards than those that the run gave them. */
@NullMarked
package dev.millrace.replay.rewards;

import org.jspecify.annotations.NullMarked;
