/** {@code millrace ledger}: options, the table, the JSON; the arithmetic is {@code dev.millrace.ledger}'s. */
@NullMarked
package dev.millrace.cli.ledger;

import org.jspecify.annotations.NullMarked;
