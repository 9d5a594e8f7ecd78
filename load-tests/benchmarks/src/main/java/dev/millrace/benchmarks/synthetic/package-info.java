/** What the load generator costs, so that a load test can be told from its own load. */
@NullMarked
package dev.millrace.benchmarks.synthetic;

import org.jspecify.annotations.NullMarked;
