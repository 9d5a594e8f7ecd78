/** The command line: maps options to configuration, and failures to messages and exit codes. */
@NullMarked
package dev.millrace.cli;

import org.jspecify.annotations.NullMarked;
