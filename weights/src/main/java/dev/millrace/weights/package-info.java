/**
 * Versions of a policy's weights on the log: written inside a transaction, read back verified.
 *
 * <p>Invariants between the classes:
 * <ol>
 *   <li>A version is its manifest ({@link dev.millrace.schemas.PolicyVersion}) and the chunks that the manifest points
 *       at. Both are written in one Kafka transaction, so a reader that sees a manifest (read_committed) can read all
 *       of the version.
 *   <li>Chunks of one version lie in order on one partition. Records of other versions, of aborted attempts and garbage
 *       may lie between them. They are skipped, and a missing chunk is reported by name.
 *   <li>A version is whole (an anchor) or deltas against its parent; {@link dev.millrace.weights.VersionWriter}
 *       decides, and the manifest says which. Loading hides the difference, but needs the version's chain since the
 *       anchor.
 *   <li>No weights are returned before the SHA-256 of every tensor and the one over all tensors have been checked.
 *   <li>An unavailable version ({@link dev.millrace.weights.VersionUnavailableException}) differs from a version that
 *       exists but is wrong ({@link dev.millrace.weights.CorruptVersionException}).
 * </ol>
 */
@NullMarked
package dev.millrace.weights;

import org.jspecify.annotations.NullMarked;
