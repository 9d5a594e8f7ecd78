package dev.millrace.runtime.config;

/**
 * When the policy is evaluated on prompts that it is never trained on, and by how much. {@code train} does it beside the run's roles;
 * {@code millrace evaluate --follow} is the role by itself.
 *
 * @param everyVersions versions between two evaluations, at least 0; version 0 and the last version are evaluated besides; 0 evaluates none,
 *     unless {@code every_seconds} says when
 * @param everySeconds seconds between two evaluations, each of the newest version then, in place of {@code every_versions}; 0 for versions
 * @param prompts held-out prompts of an evaluation, at least 1, the same ones every time; fewer where fewer are held out
 * @param samples responses to each, at least 1; pass@k is known without extrapolation up to so many
 * @param correctAbove reward above which a response counts as correct; finite
 */
public record EvaluationConfig(int everyVersions, long everySeconds, int prompts, int samples, double correctAbove) {

    public EvaluationConfig {
        if (everyVersions < 0) {
            throw new IllegalArgumentException(
                    "every_versions must be at least 0, and 0 evaluates none: " + everyVersions);
        }
        if (everySeconds < 0) {
            throw new IllegalArgumentException(
                    "every_seconds must be at least 0, and 0 leaves it to every_versions: " + everySeconds);
        }
        if (everyVersions > 0 && everySeconds > 0) {
            throw new IllegalArgumentException("every_versions is " + everyVersions + " and every_seconds is "
                    + everySeconds + "; one of them says when, so set the other to 0");
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

    /** None; where prompts of text are held out, every ten versions. */
    public static EvaluationConfig defaults() {
        return new EvaluationConfig(0, 0, 64, 4, 0.5);
    }

    /** Whether anything is evaluated while the run goes on. */
    public boolean isOn() {
        return everyVersions > 0 || everySeconds > 0;
    }

    /** The same by other numbers of prompts and responses. */
    public EvaluationConfig with(int otherPrompts, int otherSamples) {
        return new EvaluationConfig(everyVersions, everySeconds, otherPrompts, otherSamples, correctAbove);
    }
}
