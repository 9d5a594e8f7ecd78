package dev.millrace.topology.state;

import dev.millrace.topology.Fingerprint;

/** One thing that happened to a task, in the order in which it happened. */
public sealed interface TaskEvent {

    /** {@code count} records of one input arrived in a row. */
    record Arrivals(int input, long count) implements TaskEvent {}

    /** A record of an input arrived, and what it said. */
    record Told(int input, long... facts) implements TaskEvent {}

    /**
     * Nothing arrived for a while.
     *
     * @param countedMs how much of it counts as activity
     * @param wallClockMs the time at its end
     */
    record Idled(long countedMs, long wallClockMs) implements TaskEvent {}

    /**
     * The task started from the contents of its stores: a start, a restart, or a move to another instance.
     *
     * @param settings fingerprint of its settings; their text is in the same header, or in an earlier one of the task
     */
    record Began(Fingerprint settings) implements TaskEvent {}

    /** As {@link Began}, with the same settings as the start before. */
    record BeganAgain() implements TaskEvent {}

    /** The events here were too many to keep; nothing after them can be verified. */
    record Lost() implements TaskEvent {}
}
