/**
 * Other programs' engines: vLLM and SGLang as what samples for a generator or a gateway.
 *
 * <p>Promises:
 * <ol>
 * <li>Token ids go in and token ids come out, with the log-prob of each. An answer that lacks one, has one too many, or says that its
 *     prompt was another is not trained on.</li>
 * <li>A token's version is the one that the engine says sampled it. Where it cannot say that, weights change only while no answer is
 *     under way; where it says something that was not loaded, the answer is given up and the weights are loaded again.</li>
 * <li>An engine that failed in the middle of an update is not asked for anything before an update has gone through.</li>
 * <li>Its log-probs are compared with those of Millrace's own engine under the same weights, at the start and with every version, at a
 *     temperature that tells raw from processed ones. Where they are not what the configuration says, it ends.</li>
 * <li>No answer is of keys and values that an older version left in the engine's prefix cache.</li>
 * </ol>
 *
 * <p>Threads: {@link dev.millrace.gateway.engine.RemoteEngines.RemoteTurnEngine} has one, which owns everything; HTTP has its own.
 */
@NullMarked
package dev.millrace.gateway.engine;

import org.jspecify.annotations.NullMarked;
