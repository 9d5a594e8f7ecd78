/** {@code millrace doctor}: options and sentences; the rules are {@code dev.millrace.doctor}'s. */
@NullMarked
package dev.millrace.cli.doctor;

import org.jspecify.annotations.NullMarked;
