/** What a run needs, tried before there is one. */
@NullMarked
package dev.millrace.runtime.preflight;

import org.jspecify.annotations.NullMarked;
