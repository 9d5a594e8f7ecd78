/** How good a run's policy is on prompts that it is never trained on, and how far its text is from the model that it began as. */
@NullMarked
package dev.millrace.runtime.evaluation;

import org.jspecify.annotations.NullMarked;
