/**
 * Interfaces of a task: its prompts, its episodes and its rewards.
 *
 * <p>An episode is single-use, one per rollout, and a function of the prompt's state and the tokens. So a rollout is enough to verify its
 * reward again. Implementations do not see Kafka.
 */
@NullMarked
package dev.millrace.api.environment;

import org.jspecify.annotations.NullMarked;
