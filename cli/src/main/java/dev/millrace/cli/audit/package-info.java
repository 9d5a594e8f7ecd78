/**
 * Commands that inspect or repair a run: {@code ledger}, {@code trace}, {@code doctor}, {@code dead-letters}, {@code
 * quarantine}, {@code rollback}, {@code repair}.
 */
@NullMarked
package dev.millrace.cli.audit;

import org.jspecify.annotations.NullMarked;
