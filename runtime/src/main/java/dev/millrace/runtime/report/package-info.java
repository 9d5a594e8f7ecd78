/** Results of a run for people: summary, steps as rows, chart. */
@NullMarked
package dev.millrace.runtime.report;

import org.jspecify.annotations.NullMarked;
