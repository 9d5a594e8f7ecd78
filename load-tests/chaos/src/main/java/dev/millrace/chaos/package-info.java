/**
 * Faults, done one after another to a run of real processes beside real brokers, and what the run must have kept: {@link
 * dev.millrace.chaos.Chaos}.
 */
@NullMarked
package dev.millrace.chaos;

import org.jspecify.annotations.NullMarked;
