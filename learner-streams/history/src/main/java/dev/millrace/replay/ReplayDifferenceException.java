package dev.millrace.replay;

/** Ends the replay of a task at the first difference. */
final class ReplayDifferenceException extends RuntimeException {
    private static final long serialVersionUID = 1L;
    private final transient ReplayDifference difference;

    ReplayDifferenceException(ReplayDifference difference) {
        super(difference.toString(), null, false, false);
        this.difference = difference;
    }

    ReplayDifference difference() {
        return difference;
    }
}
