/**
 * Environments and rewards in any language: asked over HTTP, over a WebSocket, or on the input and output of the user's own command.
 *
 * <p>Promises:
 * <ol>
 * <li>No wait is without a limit: each attempt has {@code timeout_ms}, a question has {@code attempts} of them, and who cannot be
 *     reached at all is waited for {@code patience_ms}.</li>
 * <li>A repeated question has the same id, and the partner may give the recorded answer. A step of an episode is counted on both
 *     sides, so one that was taken twice is found out; where the other side cannot recognise a question, it is never asked twice.</li>
 * <li>At most {@code concurrency} questions are under way, or processes running; the others wait here.</li>
 * <li>Every answer is bounded by {@code answer_bytes} and read strictly. What is missing, mistyped, not finite or unknown is refused,
 *     and costs the rollout that it is about.</li>
 * </ol>
 *
 * <p>Settings are records and open nothing. A partner is opened with its first question and shared by all who name the same
 * settings in a process; a command that nobody asks for half a minute is told the end of its input.
 */
@NullMarked
package dev.millrace.generator.environment.remote;

import org.jspecify.annotations.NullMarked;
