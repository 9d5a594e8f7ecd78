package dev.millrace.corrections.diagnostics;

/**
 * Counts of the responses to one prompt.
 *
 * @param samples responses that were judged, at least 0
 * @param correct those that are correct, in [0, samples]
 * @param rewardSum of their rewards; finite
 * @param tokens that the policy wrote in them, at least 0
 * @param truncated those that ended at the longest length, in [0, samples]
 */
public record PromptCounts(int samples, int correct, double rewardSum, long tokens, int truncated) {
    public PromptCounts {
        if (samples < 0 || correct < 0 || correct > samples || truncated < 0 || truncated > samples) {
            throw new IllegalArgumentException("correct and truncated responses must be between 0 and all: correct="
                    + correct + ", truncated=" + truncated + ", samples=" + samples);
        }
        if (!Double.isFinite(rewardSum) || tokens < 0) {
            throw new IllegalArgumentException(
                    "a prompt's rewards must be finite and its tokens at least 0: reward_sum=" + rewardSum + ", tokens="
                            + tokens);
        }
    }

    /** Share of the responses that are correct; NaN without one. */
    double solveRate() {
        return (double) correct / samples;
    }
}
