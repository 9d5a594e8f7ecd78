/**
 * Serves agents that speak the OpenAI API; each session plays one of the run's samples.
 *
 * <p>Promises:
 * <ol>
 * <li>A session plays one released sample, and no two play the same, so staleness, groups and the ledger hold as for every
 *     rollout.</li>
 * <li>Sampled token ids are kept, never rendered or encoded again. A prompt that does not continue a turn begins a branch, with
 *     origin and reason in the record.</li>
 * <li>A turn is replicated on the topic {@code sessions}, and the generators' group has confirmed this gateway, before its answer
 *     ends. A successor starts later, so it reads the turn; a stalled gateway acknowledges nothing.</li>
 * <li>A session ends in one transaction: rollout, end record, and the offset of its prompt if finished. Sessions past their limit
 *     end without a verdict and are counted.</li>
 * <li>An unsupported field of a call is refused by name.</li>
 * </ol>
 *
 * <p>Threads: the role's thread reads prompts, writes ends and checks limits; each call has a server thread; the engine has its
 * own. Sessions have their own lock.
 */
@NullMarked
package dev.millrace.gateway;

import org.jspecify.annotations.NullMarked;
