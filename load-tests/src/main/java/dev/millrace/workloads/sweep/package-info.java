/** A whole load test: the baseline, then every point, and what they say together. */
@NullMarked
package dev.millrace.workloads.sweep;

import org.jspecify.annotations.NullMarked;
