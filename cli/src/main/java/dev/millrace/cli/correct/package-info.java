/** {@code correct}, and the import of records of other systems. */
@NullMarked
package dev.millrace.cli.correct;

import org.jspecify.annotations.NullMarked;
