/**
 * The one loop that reads a topic of a run: which partitions, from where, to what end, for how long at most.
 *
 * <p>Everybody who is no member of a consumer group reads with it. Members of a group, whose partitions come and go, poll for
 * themselves.
 */
@NullMarked
package dev.millrace.log.follow;

import org.jspecify.annotations.NullMarked;
