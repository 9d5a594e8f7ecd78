package dev.millrace.corrections.stage;

/** A stage cannot decide about a batch: its settings do not fit what is in it, or its code failed. */
public final class StageFailedException extends IllegalArgumentException {
    private static final long serialVersionUID = 1;
    private static final int LONGEST = 500;

    private final String stage;

    StageFailedException(String stage, RuntimeException cause) {
        super("stage " + stage + " cannot decide about the batch: " + reason(cause), cause);
        this.stage = stage;
    }

    public String stage() {
        return stage;
    }

    private static String reason(RuntimeException cause) {
        String reason = String.valueOf(cause.getMessage());
        return cause instanceof IllegalArgumentException && reason.length() <= LONGEST
                ? reason
                : cause.getClass().getSimpleName() + ": " + reason.substring(0, Math.min(LONGEST, reason.length()));
    }
}
