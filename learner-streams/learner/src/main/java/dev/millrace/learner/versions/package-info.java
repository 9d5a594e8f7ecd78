/**
 * What becomes of versions after they are committed: whether they are served, and when old ones are removed.
 *
 * <p>{@link dev.millrace.learner.versions.VersionRetention} runs on a thread of its own beside the learner, which never waits
 * for it. What it does can be done again: it is killed with the learner at any moment, and the next one goes on.
 */
@NullMarked
package dev.millrace.learner.versions;

import org.jspecify.annotations.NullMarked;
