/**
 * Runs golden cases and compares the results with those of a reference implementation.
 *
 * <p>A case file is {@code {"format_version":1,"family":F,"cases":[...]}}. Each family is a function from a parsed case
 * to an output in the layout of the case's {@code expected}. Promises: every case of every file yields exactly one result, in file order; an unknown family, an unread
 * option or a defect is an error result <em>and</em> a non-zero exit; {@code expected} is read by
 * the comparison only, so no family can see its answer.
 */
@NullMarked
package dev.millrace.conformance;

import org.jspecify.annotations.NullMarked;
