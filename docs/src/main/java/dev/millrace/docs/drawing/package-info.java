/** Pictures of the pages that are drawn from measured values. */
@NullMarked
package dev.millrace.docs.drawing;

import org.jspecify.annotations.NullMarked;
