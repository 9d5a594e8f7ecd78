/**
 * External engines (vLLM, SGLang) that sample for a generator or gateway.
 *
 * <p>Promises:
 * <ol>
 * <li>Token ids in, token ids out, each with its log-prob. Incomplete answers, and those to another prompt, are not trained on.</li>
 * <li>A token's version is the one reported by the engine. If it cannot report it, weights change only between answers; if it
 *     reports an unknown one, the answer is dropped and the weights are loaded again.</li>
 * <li>After a failed update the engine gets no request until an update succeeds.</li>
 * <li>Its log-probs are compared with Millrace's engine at start and with every version, at a temperature that distinguishes raw
 *     from processed ones. A mismatch ends it.</li>
 * <li>No answer uses prefix-cache entries of an older version.</li>
 * </ol>
 *
 * <p>Threads: {@link dev.millrace.gateway.engine.RemoteEngines.RemoteTurnEngine} has one, which owns everything; HTTP has its own.
 */
@NullMarked
package dev.millrace.gateway.engine;

import org.jspecify.annotations.NullMarked;
