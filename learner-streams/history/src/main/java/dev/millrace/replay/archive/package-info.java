/**
 * Runs as they were recorded: read from a cluster or from files, written to files, put back on a cluster.
 *
 * <p>Offsets are part of what is recorded. A batch points at trajectories and a trajectory at its rollout by topic,
 * partition and offset; an archive keeps these with every record, and an import puts each record back at its own
 * offset, so that nothing has to be translated.
 */
@NullMarked
package dev.millrace.replay.archive;

import org.jspecify.annotations.NullMarked;
