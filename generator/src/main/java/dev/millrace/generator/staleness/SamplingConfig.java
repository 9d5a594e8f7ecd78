package dev.millrace.generator.staleness;

import java.util.Optional;

/**
 * How the rollouts of a run are sampled; goes into every request.
 *
 * @param temperature divisor of the logits, above 0
 * @param topK keep the k likeliest tokens; 0 for all
 * @param topP keep the smallest set with this mass; 1 for all
 * @param minP keep tokens with this share of the likeliest one's probability, after top-k and top-p; 0 for all
 * @param maxTokens most response tokens, environment tokens included; 0 is the task's limit
 * @param seed seed of the draws; each sample derives its own stream
 * @param keepSamplingMask record the tokens that truncation kept and compare all policies over them; otherwise over the
 *     whole vocabulary
 * @param topLogProbs likeliest tokens recorded per position; 0 for none
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
            throw new IllegalArgumentException("top_k must be at least 0, where 0 keeps all: " + topK);
        }
        if (!((float) topP > 0 && topP <= 1)) {
            throw new IllegalArgumentException("top_p must be above 0 and at most 1: " + topP);
        }
        if (!(minP >= 0 && minP <= 1)) {
            throw new IllegalArgumentException("min_p must be at least 0 and at most 1: " + minP);
        }
        if (maxTokens < 0) {
            throw new IllegalArgumentException(
                    "max_tokens must be at least 0, where 0 is the task's need: " + maxTokens);
        }
        if (keepSamplingMask && topK == 0 && (float) topP == 1f && (float) minP == 0f) {
            throw new IllegalArgumentException("keep_sampling_mask must be false with top_k=0, top_p=" + topP
                    + " and min_p=" + minP + ", which exclude no token: there is no mask to keep; set one of these,"
                    + " or leave it out: true");
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
                        + " truncate the vocabulary, and keep_sampling_mask is false: policies are compared over"
                        + " the whole vocabulary by log-probs before truncation, not those of the sampled"
                        + " distribution; keep_sampling_mask=true compares them over the kept tokens")
                : Optional.empty();
    }

    public SamplingConfig withSeed(long newSeed) {
        return new SamplingConfig(temperature, topK, topP, minP, maxTokens, newSeed, keepSamplingMask, topLogProbs);
    }

    /** The plain softmax: nothing is sharpened or cut, so behavior and learner look at the same distribution. */
    public static SamplingConfig defaults() {
        return new SamplingConfig(1.0, 0, 1.0, 0.0, 0, 1, false, 0);
    }
}
