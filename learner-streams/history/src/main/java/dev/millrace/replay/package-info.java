/**
 * Replays recorded decisions: under the run's own settings, to prove the record byte for byte, or under others, to see
 * their effect.
 *
 * <p>A replay reads a {@link dev.millrace.replay.archive.RecordedRun} and writes nothing to it. The tasks and the corrections are
 * the topology's own classes.
 */
@NullMarked
package dev.millrace.replay;

import org.jspecify.annotations.NullMarked;
