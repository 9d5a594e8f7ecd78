/**
 * Shows a run on a terminal, in place or as lines. It is handed what a person wants to know at a moment and has no part in
 * the run.
 */
@NullMarked
package dev.millrace.cli.live;

import org.jspecify.annotations.NullMarked;
