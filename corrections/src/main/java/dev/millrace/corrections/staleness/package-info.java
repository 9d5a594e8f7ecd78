/**
 * What to do with tokens that old weights sampled: mask them, reject their sequence, or weigh them down.
 *
 * <p>Staleness is counted in versions: the version the batch is formed against, less the version that sampled the
 * token. A sequence may have been sampled by several versions, because weights are swapped in while it is generated;
 * its spans say which tokens are whose. A span newer than the current version is refused: it is a record of another
 * run or epoch.
 */
@NullMarked
package dev.millrace.corrections.staleness;

import org.jspecify.annotations.NullMarked;
