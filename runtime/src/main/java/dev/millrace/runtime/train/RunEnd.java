package dev.millrace.runtime.train;

/** Why a run ended; the code is the process's exit status. */
public enum RunEnd {
    GOAL_REACHED(0, "the goal was reached"),
    LAST_STEP(0, "the last step was made"),
    TIME_OVER(3, "the time limit was reached before the goal"),
    INTERRUPTED(130, "it was interrupted");

    private final int code;
    private final String reason;

    RunEnd(int code, String reason) {
        this.code = code;
        this.reason = reason;
    }

    public int code() {
        return code;
    }

    /** As a sentence's second half: the run stopped because ... */
    String reason() {
        return reason;
    }
}
