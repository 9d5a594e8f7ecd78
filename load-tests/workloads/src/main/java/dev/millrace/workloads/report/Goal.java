package dev.millrace.workloads.report;

/**
 * Something that was to be reached, and whether it was.
 *
 * @param name what it is about
 * @param measured what was seen, with its unit
 * @param bound what was asked for
 * @param holds whether it was reached
 */
public record Goal(String name, String measured, String bound, boolean holds) {}
