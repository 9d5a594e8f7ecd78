/** Turns a gradient into a change of weights, in plain Java loops. */
@NullMarked
package dev.millrace.policy.optimizer;

import org.jspecify.annotations.NullMarked;
