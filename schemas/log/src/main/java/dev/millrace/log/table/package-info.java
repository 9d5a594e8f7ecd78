/** A small table on the log: a compacted topic of one partition, read as a whole, written by one at a time. */
package dev.millrace.log.table;
