/**
 * A gateway on which agents that speak the OpenAI API play the run's samples, one session each.
 *
 * <p>Promises:
 * <ol>
 * <li>A session plays one sample that admission released, and no two play the same one: staleness, groups and the ledger hold as for
 *     every other rollout.</li>
 * <li>Token ids are kept: what the policy sampled is never rendered or encoded again. A prompt that does not go on from what was
 *     there begins a branch, and the record says where and why.</li>
 * <li>A turn is on all replicas of the topic {@code sessions} before its answer ends, and after that the group of the generators
 *     has said that it counts on this gateway. Who takes its place begins later, reads the turn there and continues; a gateway that
 *     stood still meanwhile acknowledges nothing.</li>
 * <li>A session ends in one transaction: its rollout, the record of its end, and the offset of its prompt where that is
 *     finished. One that nobody ends is ended after its time, without a verdict, and is counted.</li>
 * <li>What a call asks for and is not done is refused by its name. Nothing is left out in silence.</li>
 * </ol>
 *
 * <p>Threads: one of the role reads prompts, writes ends and looks at the time; each call has one of the server's; the engine has
 * its own. Sessions are guarded by their own lock.
 */
@NullMarked
package dev.millrace.gateway;

import org.jspecify.annotations.NullMarked;
