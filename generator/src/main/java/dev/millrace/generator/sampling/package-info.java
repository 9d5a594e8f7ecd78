/**
 * Samples rollouts: continuous batching over the slots of one engine, with weights that change under way.
 *
 * <p>Promises:
 * <ol>
 * <li>A token is of the version whose weights the call that sampled it was made with, and version spans say so. With
 *     {@code cache_on_swap: recompute} a span's log-probs are exactly that version's.</li>
 * <li>Log-probs are those of the distribution that was sampled from. The record says which: RAW, TEMPERED or TRUNCATED,
 *     the last together with the log-probs before truncation.</li>
 * <li>A rollout is a function of its request, its sample index and the weights: not of its slot, its company, or how many
 *     tokens a call advances. Draws are by position, so sampling it again gives the same rollout.</li>
 * <li>Nothing environments say is ever trained on: mask 0, log-prob 0, a turn of its own.</li>
 * <li>A prompt's offset is committed with the last of its rollouts, and only when every earlier prompt of the partition
 *     is finished. No rollout is lost; one that is repeated has the same id.</li>
 * <li>A prompt is begun with no older version than admission counted on when it released it, so that staleness when a
 *     rollout is begun stays within eta.</li>
 * <li>A request that cannot be served becomes a dead letter with its reason and stops nothing.</li>
 * </ol>
 *
 * <p>Threads: the role's own thread polls, samples and decides; one more loads weights, one more commits. They meet in a
 * volatile field and in one future.
 */
@NullMarked
package dev.millrace.generator.sampling;

import org.jspecify.annotations.NullMarked;
