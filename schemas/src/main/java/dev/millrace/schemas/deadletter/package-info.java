/**
 * Records that are refused: the closed list of reasons, and the dead letter that keeps the record with its reason.
 *
 * <p>A refused record never stops the topology, is never lost, and is written exactly once.
 */
package dev.millrace.schemas.deadletter;
