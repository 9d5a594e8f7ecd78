/**
 * Recorded runs: read from a cluster or from files, exported to files, imported into a cluster.
 *
 * <p>Offsets are part of the record. A batch points at trajectories and a trajectory at its rollout by topic,
 * partition and offset; an archive keeps these with every record, and an import puts each record back at its own
 * offset, so that nothing has to be translated.
 */
@NullMarked
package dev.millrace.replay.archive;

import org.jspecify.annotations.NullMarked;
