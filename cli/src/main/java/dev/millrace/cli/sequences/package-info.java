/** Files of sequences, one JSON object per line: what a line may have, and what it must look like. */
@NullMarked
package dev.millrace.cli.sequences;

import org.jspecify.annotations.NullMarked;
