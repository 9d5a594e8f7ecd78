/** {@code millrace dead-letters}: listing, showing and redriving what was refused. */
@NullMarked
package dev.millrace.cli.deadletters;

import org.jspecify.annotations.NullMarked;
