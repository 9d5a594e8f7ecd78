/**
 * How long a role goes on while the log is out of reach, and what it says about it: {@code run.patience_seconds} for every role.
 */
@NullMarked
package dev.millrace.log.patience;

import org.jspecify.annotations.NullMarked;
