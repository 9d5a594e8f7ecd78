/** Transactional writer of a role, and compacted tables with compare-and-set. */
@NullMarked
package dev.millrace.log.transaction;

import org.jspecify.annotations.NullMarked;
