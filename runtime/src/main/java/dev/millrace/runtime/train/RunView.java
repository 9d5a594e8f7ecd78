package dev.millrace.runtime.train;

/**
 * Shows a live run. It only receives copies and cannot affect the run.
 *
 * <p>Used by one thread, after the roles have started.
 */
public interface RunView extends AutoCloseable {
    /** How long to wait between two calls of {@link #show}, in milliseconds; above 0. */
    long periodMs();

    void show(RunStatus status);

    /** Keeps the last status on screen and releases the terminal: the roles stop next, and lines follow. */
    default void leave() {}

    /**
     * Shows how the run ended, once its roles have stopped; not called if the run failed.
     *
     * @param how such as "the goal was reached"
     * @param steps committed steps of the whole run
     */
    default void end(String how, long steps) {}

    /** Releases the view's resources. */
    @Override
    void close();

    static RunView none() {
        return new RunView() {
            @Override
            public long periodMs() {
                return 250;
            }

            @Override
            public void show(RunStatus status) {
                // no view
            }

            @Override
            public void close() {
                // no resources
            }
        };
    }
}
