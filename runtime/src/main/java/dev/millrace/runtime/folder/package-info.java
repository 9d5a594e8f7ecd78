/** Reads a run from its broker's files, without the broker. */
@NullMarked
package dev.millrace.runtime.folder;

import org.jspecify.annotations.NullMarked;
