/** Reading records of the log again, by their place on it. */
@NullMarked
package dev.millrace.log.fetch;

import org.jspecify.annotations.NullMarked;
