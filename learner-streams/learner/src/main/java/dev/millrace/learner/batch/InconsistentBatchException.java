package dev.millrace.learner.batch;

/** A batch contradicts itself or the trajectories it points at; the learner stops before it trains on wrong numbers. */
public final class InconsistentBatchException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    public InconsistentBatchException(String sentence) {
        super(sentence);
    }
}
