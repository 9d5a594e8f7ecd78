/**
 * The meters of a process: one registry that all roles report to, with the few metrics of Kafka's clients that a person
 * reads, and every number of the newest step under the names that steps.csv has, or verl.
 */
@NullMarked
package dev.millrace.runtime.metrics;

import org.jspecify.annotations.NullMarked;
