/** Tokenizers with their identity hash, and chat templates. */
@NullMarked
package dev.millrace.policy.tokenizer;

import org.jspecify.annotations.NullMarked;
