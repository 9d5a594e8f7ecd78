/** The model of a run, given back as a directory that other tools read. */
@NullMarked
package dev.millrace.runtime.model;

import org.jspecify.annotations.NullMarked;
