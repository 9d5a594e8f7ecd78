/**
 * Versions of a policy's weights on the log: written inside a transaction, read back verified.
 *
 * <p>What holds between the classes:
 * <ol>
 *   <li>A version is its manifest ({@link dev.millrace.schemas.PolicyVersion}) and the chunks that the manifest points
 *       at. Both are written in one Kafka transaction, so whoever sees a manifest (read_committed) can read all of it.
 *   <li>Chunks of one version lie in order on one partition. Records of other versions, of aborted attempts and
 *       garbage may lie between them; they are passed over, and what is then missing is missed by name.
 *   <li>A version is whole, an anchor, or deltas against its parent; {@link dev.millrace.weights.VersionWriter} decides, and
 *       its manifest says which. Who loads it need not care, except that its chain since the anchor must be there.
 *   <li>Nothing is handed out before the SHA-256 of every tensor and the one over all tensors have been checked.
 *   <li>A version that cannot be had ({@link dev.millrace.weights.VersionUnavailableException}) and a version that is
 *       there but wrong ({@link dev.millrace.weights.CorruptVersionException}) are two different things.
 * </ol>
 */
@NullMarked
package dev.millrace.weights;

import org.jspecify.annotations.NullMarked;
