/** Files of a run on its log, by the hash of their content. */
@NullMarked
package dev.millrace.log.content;

import org.jspecify.annotations.NullMarked;
