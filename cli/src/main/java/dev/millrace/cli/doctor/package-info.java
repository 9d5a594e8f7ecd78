/** {@code millrace doctor}: options and sentences; the rules are {@code dev.millrace.doctor}'s. */
package dev.millrace.cli.doctor;
