/** The one way in which a role writes to the log what belongs together: all of it, or nothing. */
@NullMarked
package dev.millrace.log.transaction;

import org.jspecify.annotations.NullMarked;
