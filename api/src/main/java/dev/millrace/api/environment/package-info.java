/**
 * What somebody implements who brings a task: its prompts, how an episode continues, what a response is worth.
 *
 * <p>An episode is single-use, one per rollout, and a function of the prompt's state and of the tokens, so that whoever holds
 * a rollout can verify its reward again. Implementations see nothing of Kafka.
 */
@NullMarked
package dev.millrace.api.environment;

import org.jspecify.annotations.NullMarked;
