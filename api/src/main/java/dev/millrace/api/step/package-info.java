/** Observers of the learner's steps. */
@NullMarked
package dev.millrace.api.step;

import org.jspecify.annotations.NullMarked;
