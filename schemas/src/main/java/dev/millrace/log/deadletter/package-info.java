/**
 * Records that are refused: the closed list of reasons, and the dead letter that keeps the record with its reason.
 *
 * <p>A refused record never stops the topology, is never lost, and is written exactly once. Once what was wrong is
 * mended, it can be redriven on its topic, once; a {@link dev.millrace.log.deadletter.RedriveMark} then says so.
 */
@NullMarked
package dev.millrace.log.deadletter;

import org.jspecify.annotations.NullMarked;
