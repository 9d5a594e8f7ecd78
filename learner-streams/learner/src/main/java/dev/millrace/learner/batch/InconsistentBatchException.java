package dev.millrace.learner.batch;

/** A batch contradicts itself, the trajectories it points at, or the run's settings; nothing is trained on it. */
public final class InconsistentBatchException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    public InconsistentBatchException(String sentence) {
        super(sentence);
    }

    /** @param cause names what cannot be trained on */
    public InconsistentBatchException(long batchId, RuntimeException cause) {
        super("batch " + batchId + " cannot be trained on: " + cause.getMessage(), cause);
    }
}
