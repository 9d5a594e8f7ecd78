/** What a learner's step costs, and how much memory it takes. */
@NullMarked
package dev.millrace.benchmarks.learner;

import org.jspecify.annotations.NullMarked;
