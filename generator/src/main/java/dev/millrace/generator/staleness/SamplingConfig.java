package dev.millrace.generator.staleness;

import java.util.Optional;

/**
 * How the rollouts of a run are sampled; goes into every request.
 *
 * @param temperature logits are divided by this; above 0
 * @param topK only the k most likely tokens are kept; 0 keeps all
 * @param topP only the smallest set of tokens with at least this mass is kept; 1 keeps all
 * @param minP of what these leave only tokens with at least this share of the likeliest one's probability are kept; 0 keeps all
 * @param maxTokens most response tokens, environment tokens included; 0 is as many as the task can use
 * @param seed of the draws; every sample of every group draws from a stream of its own derived from it
 * @param keepSamplingMask with topK, topP or minP: whether rollouts record the tokens that were left to be drawn from, and every
 *     policy is compared over these, in score, step and gradient; without it they are compared over the whole vocabulary
 * @param topLogProbs how many of the likeliest tokens rollouts record at each position, for what compares distributions; 0
 *     records none
 */
public record SamplingConfig(
        double temperature,
        int topK,
        double topP,
        double minP,
        int maxTokens,
        long seed,
        boolean keepSamplingMask,
        int topLogProbs) {

    public SamplingConfig {
        if (!((float) temperature > 0 && (float) temperature < Float.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException("temperature must be finite and above 0: " + temperature);
        }
        if (topK < 0) {
            throw new IllegalArgumentException("top_k must be at least 0, and 0 keeps all: " + topK);
        }
        if (!((float) topP > 0 && topP <= 1)) {
            throw new IllegalArgumentException("top_p must be above 0 and at most 1: " + topP);
        }
        if (!(minP >= 0 && minP <= 1)) {
            throw new IllegalArgumentException("min_p must be at least 0 and at most 1: " + minP);
        }
        if (maxTokens < 0) {
            throw new IllegalArgumentException(
                    "max_tokens must be at least 0, and 0 is what the task can use: " + maxTokens);
        }
        if (keepSamplingMask && topK == 0 && (float) topP == 1f && (float) minP == 0f) {
            throw new IllegalArgumentException("keep_sampling_mask must be false with top_k=0, top_p=" + topP
                    + " and min_p=" + minP + ", which leave"
                    + " out no token: there is no mask to keep; set one of these, or leave it out: true");
        }
        if (topLogProbs < 0) {
            throw new IllegalArgumentException("top_log_probs must be at least 0, and 0 records none: " + topLogProbs);
        }
    }

    /** What is to be said of it before a run begins; empty where nothing needs saying. */
    public Optional<String> notice() {
        boolean cuts = topK > 0 || (float) topP < 1f || (float) minP > 0f;
        return cuts && !keepSamplingMask
                ? Optional.of("top_k=" + topK + ", top_p=" + topP + " and min_p=" + minP
                        + " leave out tokens, and keep_sampling_mask is false:"
                        + " policies are compared over the whole vocabulary, by log-probs before truncation, which are not"
                        + " those of the distribution that was sampled from; keep_sampling_mask=true compares them over"
                        + " the tokens that were left")
                : Optional.empty();
    }

    /** The plain softmax: nothing is sharpened or cut, so behavior and learner look at the same distribution. */
    public static SamplingConfig defaults() {
        return new SamplingConfig(1.0, 0, 1.0, 0.0, 0, 1, false, 0);
    }
}
