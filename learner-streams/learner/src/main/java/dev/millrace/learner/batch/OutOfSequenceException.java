package dev.millrace.learner.batch;

/** The batches on the log cannot be continued with the versions on the log; the learner stops, and says what is missing. */
public final class OutOfSequenceException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    public OutOfSequenceException(String sentence) {
        super(sentence);
    }
}
