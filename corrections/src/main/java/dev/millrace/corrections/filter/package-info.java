/**
 * AReaL's rejection matrix: metric × level × aggregation × action, over the ratio of the proximal to the behavior
 * policy.
 *
 * <p>Its k1 is {@code +log rho}; the rejection modes named after verl take {@code -log rho}. A threshold cannot be
 * carried from one to the other without turning its sign.
 */
@NullMarked
package dev.millrace.corrections.filter;

import org.jspecify.annotations.NullMarked;
