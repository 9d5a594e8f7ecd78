/** {@code millrace dead-letters}: listing, showing and putting back what was refused. */
@NullMarked
package dev.millrace.cli.deadletters;

import org.jspecify.annotations.NullMarked;
