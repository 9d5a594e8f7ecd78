/** {@code millrace trace}: the way of one rollout, or of a group, as lines or JSON; what is found is {@code dev.millrace.trace}'s. */
@NullMarked
package dev.millrace.cli.trace;

import org.jspecify.annotations.NullMarked;
