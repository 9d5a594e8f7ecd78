/** {@code millrace ledger}: options, the table, the JSON; the arithmetic is {@code dev.millrace.ledger}'s. */
package dev.millrace.cli.ledger;
