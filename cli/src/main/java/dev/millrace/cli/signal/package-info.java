/** Ctrl-C and a polite kill, as requests to stop. */
@NullMarked
package dev.millrace.cli.signal;

import org.jspecify.annotations.NullMarked;
