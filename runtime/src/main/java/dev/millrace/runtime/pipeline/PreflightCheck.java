package dev.millrace.runtime.pipeline;

/**
 * A requirement of a run and the result of its check.
 *
 * @param sentence what was found; where it will not do, with the way out
 */
public record PreflightCheck(String subject, Outcome outcome, String sentence) {

    /** Result of a check. */
    public enum Outcome {
        OK,
        /** A run starts but may be impaired. */
        DOUBT,
        /** A run would be refused, or fail at first use. */
        FAILED,
        /** Skipped, because an earlier check failed. */
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
