/** Text to token ids and back, with a hash that tells whether two runs mean the same by an id. */
@NullMarked
package dev.millrace.policy.tokenizer;

import org.jspecify.annotations.NullMarked;
