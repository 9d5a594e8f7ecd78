/**
 * A run on a cluster: whose the topics under a prefix are, and everything a role needs before it can begin.
 *
 * <p>Order of events: the cluster answers; the schema log is there; the topic {@code run} is there; the claim in
 * it is ours, by a compare-and-set that two runs cannot both win; the other topics are there with the right
 * settings and take records; their schemas are registered. A second run that asks for the same prefix is refused
 * at the claim, before it has read or written anything of the first one.
 */
@NullMarked
package dev.millrace.log.run;

import org.jspecify.annotations.NullMarked;
