/** Text to token ids and back, at the edges of the product; between them only ids travel. */
@NullMarked
package dev.millrace.api.tokenizer;

import org.jspecify.annotations.NullMarked;
