/** Turns a gradient into a change of weights, in plain Java loops. */
package dev.millrace.policy.optimizer;
