/** A small table on the log: a compacted topic of one partition, read as a whole, written by one at a time. */
@NullMarked
package dev.millrace.log.table;

import org.jspecify.annotations.NullMarked;
