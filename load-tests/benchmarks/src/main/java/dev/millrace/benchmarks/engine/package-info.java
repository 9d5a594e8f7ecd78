/** What the generator's engine takes: prompts taken in at once beside one token at a time, and sampling. */
@NullMarked
package dev.millrace.benchmarks.engine;

import org.jspecify.annotations.NullMarked;
