/** Records that nobody should write. */
@NullMarked
package dev.millrace.chaos.garbage;

import org.jspecify.annotations.NullMarked;
