/** Traces of rollouts and groups through the topics of a run, and the redrive of dead letters. */
@NullMarked
package dev.millrace.audit.trace;

import org.jspecify.annotations.NullMarked;
