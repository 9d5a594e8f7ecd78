/** {@code millrace train}: a whole run in this process. */
@NullMarked
package dev.millrace.cli.train;

import org.jspecify.annotations.NullMarked;
