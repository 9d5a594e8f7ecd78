/**
 * What was recorded, decided again: by the run's own settings, to show that the record explains the run byte for byte, or
 * by others, to see what they would have done.
 *
 * <p>A replay reads a {@link dev.millrace.replay.archive.RecordedRun} and writes nothing to it. The tasks and the corrections are
 * the topology's own classes.
 */
@NullMarked
package dev.millrace.replay;

import org.jspecify.annotations.NullMarked;
