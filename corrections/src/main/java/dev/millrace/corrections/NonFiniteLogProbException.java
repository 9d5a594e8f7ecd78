package dev.millrace.corrections;

/**
 * A value at a trained token is NaN or infinite; names the vector, the sequence and the token.
 *
 * <p>Nothing is substituted for such a value, because every substitute would be misleading: a log ratio of 0 looks
 * perfectly on-policy. The caller drops the sequence, or investigates its engine.
 */
public final class NonFiniteLogProbException extends IllegalArgumentException {
    private static final long serialVersionUID = 1L;

    private final int sequence;

    /**
     * @param vector the caller's name of the vector, such as "behavior log-probs"
     * @param token index of the token within its sequence, not the packed position
     */
    public NonFiniteLogProbException(String vector, int sequence, int token, double value) {
        super(vector + " must be finite at trained tokens: sequence=" + sequence + ", token=" + token + ", value="
                + value);
        this.sequence = sequence;
    }

    public int sequence() {
        return sequence;
    }
}
