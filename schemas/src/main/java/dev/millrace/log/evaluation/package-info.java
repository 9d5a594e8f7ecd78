/** The evaluations of a run's versions on held-out prompts, as its log has them. */
@NullMarked
package dev.millrace.log.evaluation;

import org.jspecify.annotations.NullMarked;
