/**
 * Log-probs of recorded trajectories computed again, by the learner's engine, under versions that the recorded ones are not
 * of. Which versions is asked for; where they are those of the record, the record is proved bit for bit.
 */
@NullMarked
package dev.millrace.replay.rescore;

import org.jspecify.annotations.NullMarked;
