/** A whole run in one process: configuration, roles, what is measured, and what is left behind. */
@NullMarked
package dev.millrace.runtime;

import org.jspecify.annotations.NullMarked;
