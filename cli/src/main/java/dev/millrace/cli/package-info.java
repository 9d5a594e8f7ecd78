/** The command line: where options become configuration, and failures sentences with an exit code. */
@NullMarked
package dev.millrace.cli;

import org.jspecify.annotations.NullMarked;
