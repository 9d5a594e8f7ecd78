package dev.millrace.topology.journal;

/** One thing that happened to a task, in the order in which it happened. */
public sealed interface Event {

    /** So many records of one input arrived, one behind the other. */
    record Arrivals(int input, long count) implements Event {}

    /** A record of an input arrived, and what it said. */
    record Told(int input, long... facts) implements Event {}

    /**
     * Nothing arrived for a while.
     *
     * @param countedMs how much of it counts as activity
     * @param wallClockMs the time at its end
     */
    record Idled(long countedMs, long wallClockMs) implements Event {}

    /**
     * The task began on what its stores held: a start, a restart, or a move to another instance.
     *
     * @param settings fingerprint of all settings that its decisions depend on
     */
    record Began(long settings) implements Event {}

    /** What happened here was too much to be kept; from here on nothing can be proved. */
    record Lost() implements Event {}
}
