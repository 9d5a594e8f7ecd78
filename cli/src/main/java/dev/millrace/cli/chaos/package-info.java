/** {@code millrace chaos}. */
@NullMarked
package dev.millrace.cli.chaos;

import org.jspecify.annotations.NullMarked;
