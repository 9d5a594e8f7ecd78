package dev.millrace.runtime.pipeline;

/**
 * One part of the pipeline: runs until it is stopped.
 *
 * @param run blocks until stopped; throws if the role failed
 * @param endsByItself whether returning from {@code run} without a stop request is normal
 * @param stop asks it to end; returns at once, may be called from any thread and more than once
 */
public record Role(String name, Runnable run, boolean endsByItself, Runnable stop) {

    /** A role that runs until it is stopped. */
    public Role(String name, Runnable run, Runnable stop) {
        this(name, run, false, stop);
    }
}
