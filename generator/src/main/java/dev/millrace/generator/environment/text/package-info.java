/**
 * Prompts of text for a checkpoint that has a tokenizer: rows of data, one turn each, rewarded by what the answer says.
 *
 * <p>Text exists where prompts are released and where responses are rewarded; between them only token ids travel.
 */
@NullMarked
package dev.millrace.generator.environment.text;

import org.jspecify.annotations.NullMarked;
