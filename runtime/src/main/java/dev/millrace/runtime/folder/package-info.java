/** A run's folder read without its broker: what the broker's files hold of the run. */
@NullMarked
package dev.millrace.runtime.folder;

import org.jspecify.annotations.NullMarked;
