/** What a learner's step costs, and how much memory it takes. */
package dev.millrace.benchmarks.learner;
