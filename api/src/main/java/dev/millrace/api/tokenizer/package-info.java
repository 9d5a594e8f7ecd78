/** Text to token ids and back, at the edges of the product; inside only ids are used. */
@NullMarked
package dev.millrace.api.tokenizer;

import org.jspecify.annotations.NullMarked;
