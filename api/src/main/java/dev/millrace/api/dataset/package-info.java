/**
 * Where prompts of text come from: rows of a file or of anything else, each with what its reward needs to know.
 *
 * <p>A dataset knows no tokens; the task encodes its prompts, once, where they are released.
 */
@NullMarked
package dev.millrace.api.dataset;

import org.jspecify.annotations.NullMarked;
