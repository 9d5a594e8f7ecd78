/** {@code millrace bench}: what a machine's engine does, without a pipeline around it. */
@NullMarked
package dev.millrace.cli.bench;

import org.jspecify.annotations.NullMarked;
