/** What a measurement says about itself: numbers with their spread, and where they were taken. */
package dev.millrace.workloads.report;
