/** Meters of a process, their HTTP endpoint, OTLP and TensorBoard outputs. */
@NullMarked
package dev.millrace.runtime.metrics;

import org.jspecify.annotations.NullMarked;
