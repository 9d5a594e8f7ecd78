/** What a measurement says about itself: numbers with their spread, and where they were taken. */
@NullMarked
package dev.millrace.workloads.report;

import org.jspecify.annotations.NullMarked;
