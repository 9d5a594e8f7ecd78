package dev.millrace.topology.task;

/**
 * Something that a stage waits for.
 *
 * @param stage who waits, such as join, assemble or batches
 * @param partition of the stage's task
 * @param progress a number that changes with every step forward; as long as it does, the wait is none to worry about
 * @param what for, as the rest of a sentence, with how much of it there is
 */
public record Wait(String stage, int partition, long progress, String what) {}
