/**
 * Tasks and environments: the prompt, the dialogue, and the reward of the answer.
 *
 * <p>To add an environment:
 * <ol>
 * <li>Implement {@link dev.millrace.api.environment.Environment} and its
 *     {@link dev.millrace.api.environment.Episode}. The episode is single-use, one per rollout, and a function of
 *     the request's state and of the tokens: no clock, no randomness, no setting that is not in the state. A rollout and
 *     its request are then enough to verify the reward again.</li>
 * <li>Decide how a response ends. {@code endToken()} if the policy says so, {@code StepResult.END} if the environment
 *     does; the token limit of the request always holds.</li>
 * <li>To answer in between, return {@code StepResult.insert(...)}: the tokens are inserted behind the policy's newest token,
 *     get mask 0 and log-prob 0, and the policy continues after them. If the limit leaves no room for them, the response
 *     ends there and is verified as it stands. Return {@code StepResult.LATER} while slow work runs;
 *     other sequences continue meanwhile.</li>
 * <li>Verify from the transcript, never from what the episode remembers, and handle a response that was cut anywhere.
 *     The reward must be finite; name its parts in the components.</li>
 * <li>Make prompts with a {@link dev.millrace.api.environment.PromptDataset}, a pure function of seed and ordinal
 *     (draw with {@link dev.millrace.generator.sampling.CounterBasedRandom}), and put what the episode needs into the state.</li>
 * <li>Make the settings of the task a record that is a {@link dev.millrace.api.environment.TaskSettings}, and register it:
 *     Millrace's own in {@link dev.millrace.generator.environment.BuiltInTasks}, any other as a plug-in in its own jar.</li>
 * </ol>
 *
 * <p>An existing environment may serve several tasks: {@code inc} and {@code sort} differ only in their prompts.
 */
@NullMarked
package dev.millrace.generator.environment;

import org.jspecify.annotations.NullMarked;
