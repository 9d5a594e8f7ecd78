package dev.millrace.topology.task;

import dev.millrace.topology.state.Observation;
import java.util.List;

/**
 * Decides about what comes: the part of a task that needs no stream engine, no wall clock and no consumer.
 *
 * <p>What it decides follows from its settings, what its stores held when it was made, and the calls below in their
 * order; so it decides the same live and in a replay. What it does not keep in its stores is lost when it is made anew
 * on them, as after a crash. Confined to one thread.
 *
 * @param <A> what comes
 */
public interface DecisionTask<A extends Observation> extends AutoCloseable {

    /**
     * Something has come.
     *
     * @param timestampMs when what it tells of happened, Unix milliseconds
     */
    void take(A arrival, long timestampMs);

    /**
     * Nothing has come for a while.
     *
     * @param countedMs how much of it counts as activity
     * @param wallClockMs the time now, Unix milliseconds
     * @return whether anything has changed that would be otherwise had the time come in other portions; false if only
     *     its clock went on
     */
    boolean idle(long countedMs, long wallClockMs);

    /** What it waits for, with a number each that changes with every step forward; decides nothing. */
    List<Wait> waits();

    /** Its activity clock. */
    long nowMs();

    @Override
    void close();
}
