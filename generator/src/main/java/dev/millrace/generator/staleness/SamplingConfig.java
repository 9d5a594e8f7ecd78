package dev.millrace.generator.staleness;

/**
 * How the rollouts of a run are sampled; goes into every request.
 *
 * @param temperature logits are divided by this; above 0
 * @param topK only the k most likely tokens are kept; 0 keeps all
 * @param topP only the smallest set of tokens with at least this mass is kept; 1 keeps all
 * @param maxTokens most response tokens, environment tokens included; 0 is as many as the task can use
 * @param seed of the draws; every sample of every group draws from a stream of its own derived from it
 */
public record SamplingConfig(double temperature, int topK, double topP, int maxTokens, long seed) {

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
        if (maxTokens < 0) {
            throw new IllegalArgumentException(
                    "max_tokens must be at least 0, and 0 is what the task can use: " + maxTokens);
        }
    }

    /** The plain softmax: nothing is sharpened or cut, so behavior and learner look at the same distribution. */
    public static SamplingConfig defaults() {
        return new SamplingConfig(1.0, 0, 1.0, 0, 1);
    }
}
