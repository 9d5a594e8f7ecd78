/** Tokens the policy did not choose: placeholders of prompts, and tokens that a template or grammar forced. */
@NullMarked
package dev.millrace.corrections.forced;

import org.jspecify.annotations.NullMarked;
