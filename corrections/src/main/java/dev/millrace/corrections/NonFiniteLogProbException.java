package dev.millrace.corrections;

/**
 * A value at a trained token is NaN or infinite; names the vector, the sequence and the token.
 *
 * <p>Nothing is substituted for such a value, because every substitute would be misleading: a log ratio of 0 looks
 * perfectly on-policy. The caller drops the sequence, or investigates its engine.
 */
public final class NonFiniteLogProbException extends IllegalArgumentException {
    private static final long serialVersionUID = 1L;

    private final String vector;
    private final int sequence;
    private final int token;

    /**
     * @param vector the caller's name of the vector, such as "behavior log-probs"
     * @param sequence index of the sequence in the batch
     * @param token index of the token within its sequence, not the packed position
     * @param value the value
     */
    public NonFiniteLogProbException(String vector, int sequence, int token, double value) {
        super(vector + " must be finite at trained tokens: sequence=" + sequence + ", token=" + token + ", value="
                + value);
        this.vector = vector;
        this.sequence = sequence;
        this.token = token;
    }

    /** Which vector. */
    public String vector() {
        return vector;
    }

    /** Index of the sequence in the batch. */
    public int sequence() {
        return sequence;
    }

    /** Index of the token within its sequence. */
    public int token() {
        return token;
    }
}
