/**
 * Callable sessions over graphs.
 *
 * <ol>
 * <li>A session holds no weights: each call reads the ones it is given, in place, and they must not change until it returns.
 * <li>{@link dev.millrace.policy.session.ScoringSession} may be called by several threads;
 *     {@link dev.millrace.policy.session.GradientSession} and {@link dev.millrace.policy.session.DecodeSession} have one
 *     owner. All work happens on the caller's thread.
 * <li>The same calls with the same arguments give the same bits on the same kind of machine.
 * <li>Packed results follow {@link dev.millrace.policy.session.SequenceBatch}: sequence after sequence, one value per token
 *     from {@code firstScored} on.
 * <li>Sessions hold native memory; their owner closes them.
 * </ol>
 */
@NullMarked
package dev.millrace.policy.session;

import org.jspecify.annotations.NullMarked;
