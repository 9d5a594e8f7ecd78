package dev.millrace.runtime.config;

/**
 * When and on how many held-out prompts the policy is evaluated. {@code train} runs the evaluator with the other roles;
 * {@code millrace evaluate --follow} runs it alone.
 *
 * @param everyVersions versions between evaluations, plus the first and last; 0 for none, unless {@code every_seconds}
 * @param everySeconds seconds between evaluations of the newest version; 0 uses {@code every_versions}
 * @param prompts held-out prompts, at least 1, always the same
 * @param samples responses per prompt, at least 1; largest k of unbiased pass@k
 * @param correctAbove reward above which a response is correct; finite
 */
public record EvaluationConfig(int everyVersions, long everySeconds, int prompts, int samples, double correctAbove) {

    public EvaluationConfig {
        if (everyVersions < 0) {
            throw new IllegalArgumentException(
                    "every_versions must be at least 0, where 0 evaluates none: " + everyVersions);
        }
        if (everySeconds < 0) {
            throw new IllegalArgumentException(
                    "every_seconds must be at least 0, where 0 leaves it to every_versions: " + everySeconds);
        }
        if (everyVersions > 0 && everySeconds > 0) {
            throw new IllegalArgumentException("every_versions is " + everyVersions + " and every_seconds is "
                    + everySeconds + "; only one can set the schedule, so set the other to 0");
        }
        if (prompts < 1) {
            throw new IllegalArgumentException("prompts must be at least 1: " + prompts);
        }
        if (samples < 1) {
            throw new IllegalArgumentException("samples must be at least 1: " + samples);
        }
        if (!Double.isFinite(correctAbove)) {
            throw new IllegalArgumentException("correct_above must be finite: " + correctAbove);
        }
    }

    /** Off; every ten versions where text prompts are held out. */
    public static EvaluationConfig defaults() {
        return new EvaluationConfig(0, 0, 64, 4, 0.5);
    }

    /** Returns whether the run is evaluated while it trains. */
    public boolean isOn() {
        return everyVersions > 0 || everySeconds > 0;
    }

    /** Returns a copy with other numbers of prompts and responses. */
    public EvaluationConfig with(int otherPrompts, int otherSamples) {
        return new EvaluationConfig(everyVersions, everySeconds, otherPrompts, otherSamples, correctAbove);
    }
}
