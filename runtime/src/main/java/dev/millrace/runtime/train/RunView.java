package dev.millrace.runtime.train;

/**
 * Shows a run while it goes. It has no part in the run: what it is handed is a copy.
 *
 * <p>Used by the one thread that watches the run, from after its roles have started until they are to stop.
 */
public interface RunView extends AutoCloseable {
    /** How long to wait between two calls of {@link #show}, in milliseconds; above 0. */
    long periodMs();

    /** Shows the newest status. */
    void show(RunStatus status);

    /** Leaves the last status where it is shown, and gives back what was taken to show it. */
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
