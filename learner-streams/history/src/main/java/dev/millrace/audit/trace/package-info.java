/**
 * The way of one rollout, or of a group of them, from the topics of a run: which records tell of it, and where they lie.
 */
@NullMarked
package dev.millrace.audit.trace;

import org.jspecify.annotations.NullMarked;
