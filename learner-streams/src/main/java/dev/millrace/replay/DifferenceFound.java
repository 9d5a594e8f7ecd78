package dev.millrace.replay;

/** Ends the replay of a task at the first difference. */
final class DifferenceFound extends RuntimeException {
    private static final long serialVersionUID = 1L;
    private final transient Difference difference;

    DifferenceFound(Difference difference) {
        super(difference.toString(), null, false, false);
        this.difference = difference;
    }

    Difference difference() {
        return difference;
    }
}
