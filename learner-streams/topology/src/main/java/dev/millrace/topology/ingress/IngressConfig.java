package dev.millrace.topology.ingress;

import dev.millrace.schemas.rollout.RolloutLimits;

/**
 * What rollouts and scores are held to when they arrive, beyond what they claim about themselves.
 *
 * @param tokenizerHash required vocabulary hash; empty accepts any
 * @param vocabularySize token ids must be below this; 0 for no check
 * @param maxGroupSize largest group, at least 1
 * @param maxReward largest absolute reward, above 0, at most 1e18
 */
public record IngressConfig(String tokenizerHash, int vocabularySize, int maxGroupSize, double maxReward) {
    public IngressConfig {
        if (tokenizerHash == null) {
            throw new IllegalArgumentException("tokenizer_hash must be given; leave it empty to accept any vocabulary");
        }
        if (vocabularySize < 0) {
            throw new IllegalArgumentException("vocabulary_size must be at least 0: " + vocabularySize);
        }
        if (maxGroupSize < 1 || maxGroupSize > RolloutLimits.LARGEST_GROUP) {
            throw new IllegalArgumentException(
                    "max_group_size must be in [1, " + RolloutLimits.LARGEST_GROUP + "]: " + maxGroupSize);
        }
        if (!(maxReward > 0.0 && maxReward <= RolloutLimits.LARGEST_REWARD)) {
            throw new IllegalArgumentException("max_reward must be greater than 0 and at most 1e18: " + maxReward);
        }
    }

    /** What a rollout is held to; how many positions the policy has is the scorer's to know. */
    public RolloutLimits limits() {
        return new RolloutLimits(tokenizerHash, vocabularySize, 0, maxGroupSize, maxReward);
    }

    /** Any vocabulary, groups of up to 4096, rewards of up to a million. */
    public static IngressConfig defaults() {
        return new IngressConfig("", 0, 4096, 1e6);
    }
}
