package dev.millrace.cli.role;

/**
 * One part of the pipeline as the command line sees it: something that runs until it is told to stop.
 *
 * @param name as shown to a person
 * @param run blocks until stopped; throws if the role failed
 * @param stop asks it to end; returns at once, may be called from any thread and more than once
 */
public record Role(String name, Runnable run, Runnable stop) {
}
