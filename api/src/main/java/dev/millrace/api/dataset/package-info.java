/**
 * Sources of text prompts: rows of a file or another source, each with the data for its reward.
 *
 * <p>A dataset has text only; the task encodes each prompt once, when it is released.
 */
@NullMarked
package dev.millrace.api.dataset;

import org.jspecify.annotations.NullMarked;
