/** What a run leaves for people: its summary, its steps as rows, its picture. */
@NullMarked
package dev.millrace.runtime.report;

import org.jspecify.annotations.NullMarked;
