package dev.millrace.topology.task;

import dev.millrace.topology.state.Observation;
import java.util.List;

/**
 * Makes the decisions of a task: the part that needs no stream engine, no wall clock and no consumer.
 *
 * <p>Its decisions depend only on its settings, the initial contents of its stores, and the order of the calls below;
 * so they are the same live and in a replay. State outside its stores is lost when the task is recreated, as after a
 * crash. Confined to one thread.
 *
 * @param <A> type of the arrivals
 */
public interface DecisionTask<A extends Observation> extends AutoCloseable {

    /**
     * Takes an arrival.
     *
     * @param timestampMs when the event happened, Unix milliseconds
     */
    void take(A arrival, long timestampMs);

    /**
     * Handles a time without arrivals.
     *
     * @param countedMs how much of it counts as activity
     * @param wallClockMs the time now, Unix milliseconds
     * @return whether the result depends on how the time was split into calls; false if only the clock advanced
     */
    boolean idle(long countedMs, long wallClockMs);

    /** Returns the current waits, each with a number that changes with every progress; makes no decision. */
    List<Wait> waits();

    /** Its activity clock. */
    long nowMs();

    @Override
    void close();
}
