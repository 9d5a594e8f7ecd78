package dev.millrace.runtime.train;

/**
 * Shows a run while it goes. It has no part in the run: what it is handed is a copy.
 *
 * <p>Used by the one thread that runs it, from after its roles have started.
 */
public interface RunView extends AutoCloseable {
    /** How long to wait between two calls of {@link #show}, in milliseconds; above 0. */
    long periodMs();

    /** Shows the newest status. */
    void show(RunStatus status);

    /** Leaves the last status where it is shown and gives the terminal back: the roles are to stop, and lines follow. */
    default void leave() {}

    /**
     * Shows how the run ended, once its roles have stopped; not called if the run failed.
     *
     * @param how such as "the goal was reached"
     * @param steps committed steps of the whole run
     */
    default void end(String how, long steps) {}

    /** Gives back what was taken to show the run. */
    @Override
    void close();

    /** Shows nothing. */
    static RunView none() {
        return new RunView() {
            @Override
            public long periodMs() {
                return 250;
            }

            @Override
            public void show(RunStatus status) {
                // nobody looks
            }

            @Override
            public void close() {
                // nothing was taken
            }
        };
    }
}
