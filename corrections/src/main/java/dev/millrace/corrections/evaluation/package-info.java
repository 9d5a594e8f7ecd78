/**
 * What the responses to held-out prompts say of a policy: from how often each prompt was solved, every figure with its interval.
 *
 * <p>The unit is the prompt. Responses to one prompt are alike, so an interval is taken over prompts and never over responses.
 */
@NullMarked
package dev.millrace.corrections.evaluation;

import org.jspecify.annotations.NullMarked;
