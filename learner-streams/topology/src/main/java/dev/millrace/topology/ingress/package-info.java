/**
 * What comes in: bytes to rollouts and what belongs to them, each held to everything it claims.
 *
 * <p>Whatever the bytes are, a record either goes on as an {@link dev.millrace.topology.ingress.Arrival} or to the dead
 * letters with a reason; nothing else can happen to it. What holds of an arrival is therefore not asked again.
 */
@NullMarked
package dev.millrace.topology.ingress;

import org.jspecify.annotations.NullMarked;
