/** Readers of whole topics and of single records, without a group, of committed records only. */
@NullMarked
package dev.millrace.log.scan;

import org.jspecify.annotations.NullMarked;
