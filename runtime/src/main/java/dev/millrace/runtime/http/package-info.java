/** The HTTP port on loopback: metrics for Prometheus, and whatever else is mounted. */
@NullMarked
package dev.millrace.runtime.http;

import org.jspecify.annotations.NullMarked;
