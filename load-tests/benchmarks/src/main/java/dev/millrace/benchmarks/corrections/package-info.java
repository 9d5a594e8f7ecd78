/** What the corrections cost per token, at sizes that occur. */
@NullMarked
package dev.millrace.benchmarks.corrections;

import org.jspecify.annotations.NullMarked;
