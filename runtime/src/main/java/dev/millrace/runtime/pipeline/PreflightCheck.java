package dev.millrace.runtime.pipeline;

/**
 * Something that a run needs, and whether it is there.
 *
 * @param subject a word or two
 * @param sentence what was found; where it will not do, with the way out
 */
public record PreflightCheck(String subject, Outcome outcome, String sentence) {

    /** What the check says of a run. */
    public enum Outcome {
        /** A run can have it. */
        OK,
        /** A run begins, and may suffer from it. */
        DOUBT,
        /** A run would be refused, or end at its first use. */
        FAILED,
        /** It was not tried, because something before it failed. */
        SKIPPED
    }

    static PreflightCheck ok(String subject, String sentence) {
        return new PreflightCheck(subject, Outcome.OK, sentence);
    }

    static PreflightCheck doubt(String subject, String sentence) {
        return new PreflightCheck(subject, Outcome.DOUBT, sentence);
    }

    static PreflightCheck failed(String subject, String sentence) {
        return new PreflightCheck(subject, Outcome.FAILED, sentence);
    }

    static PreflightCheck skipped(String subject, String after) {
        return new PreflightCheck(subject, Outcome.SKIPPED, "not tried, since " + after + " failed");
    }
}
