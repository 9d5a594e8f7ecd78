package dev.millrace.learner.batch;

/**
 * A batch points at a trajectory that cannot be read; the learner stops, since training on the rest would be another
 * batch.
 */
public final class TrajectoryUnavailableException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    public TrajectoryUnavailableException(String sentence) {
        super(sentence);
    }
}
