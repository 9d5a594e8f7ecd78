/**
 * Diagnoses a run, most severe finding first: an examination reads its topics, and pure rules judge it.
 */
@NullMarked
package dev.millrace.audit.doctor;

import org.jspecify.annotations.NullMarked;
