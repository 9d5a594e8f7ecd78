/**
 * Reading topics of a run from outside: as a member of no group, committed records only, up to where they end now, within a
 * limit of time. What the ledger, traces and dead letters are read with.
 */
@NullMarked
package dev.millrace.log.scan;

import org.jspecify.annotations.NullMarked;
