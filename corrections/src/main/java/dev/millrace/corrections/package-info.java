/**
 * Off-policy corrections of language-model reinforcement learning, over ragged token batches.
 *
 * <p>What holds in every package below this one:
 * <ol>
 *   <li>A batch is a {@link dev.millrace.corrections.TokenBatch}; values are arrays with one element per packed token.
 *       Log-probs are natural logs of the sampled token, as {@code float}; arithmetic is in {@code double}.
 *   <li>Four policies, four names. <i>Behavior</i> sampled the tokens (in the inference engine); <i>old</i> is the same
 *       version in the learner's engine; <i>proximal</i> is the version at which the batch is formed and the anchor of
 *       clipping; <i>current</i> is being differentiated. No method multiplies two ratios into one.
 *   <li>Truncate a weight, clip an objective, mask a token, reject a sequence: four verbs, four meanings.
 *   <li>Context tokens are never read. A non-finite value at a trained token is refused with its sequence and token.
 *   <li>Methods allocate their results and blocks of a fixed size, nothing else proportional to the tokens, unless they
 *       say so. Everything is immutable or confined to one call, so any method may run on any thread.
 *   <li>Where a reference implementation is known to be wrong, the method's own default is right and says so; the
 *       reference's number is available under an option whose name says <i>reference</i>.
 * </ol>
 */
@NullMarked
package dev.millrace.corrections;

import org.jspecify.annotations.NullMarked;
