/**
 * Ingress: decodes bytes to rollouts and their partners, and validates each record.
 *
 * <p>A record with any bytes is either forwarded as an {@link dev.millrace.topology.ingress.Arrival} or sent to the
 * dead letters with a reason. Later code therefore does not validate an arrival again.
 */
@NullMarked
package dev.millrace.topology.ingress;

import org.jspecify.annotations.NullMarked;
