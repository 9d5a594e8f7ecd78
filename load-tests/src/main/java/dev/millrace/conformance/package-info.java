/**
 * Runs golden cases: what Millrace computes for inputs whose answers a reference implementation has given.
 *
 * <p>A case file is {@code {"format_version":1,"family":F,"cases":[...]}}. Each family is one class that turns a parsed
 * case into an output in the layout of the case's {@code expected}; the runner adds names, refusals and comparison.
 * Promises: every case of every file yields exactly one result, in file order; an unknown family, an option that no one
 * read, or a defect of ours is an error result <em>and</em> a non-zero exit, never a skip; {@code expected} is read by
 * the comparison only, so no family can see its answer.
 */
@NullMarked
package dev.millrace.conformance;

import org.jspecify.annotations.NullMarked;
