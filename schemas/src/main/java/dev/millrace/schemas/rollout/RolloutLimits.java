package dev.millrace.schemas.rollout;

/**
 * Limits that rollouts are checked against.
 *
 * @param tokenizerHash required vocabulary; empty for any, but one must be named
 * @param vocabularySize token ids must be below this; 0 for no check
 * @param maxPositions most tokens of prompt and response together; 0 leaves it unchecked
 * @param maxGroupSize largest group, at least 1
 * @param maxReward largest magnitude of a reward, greater than 0
 */
public record RolloutLimits(
        String tokenizerHash, int vocabularySize, int maxPositions, int maxGroupSize, double maxReward) {
    /** Largest group size that a configuration allows. */
    public static final int LARGEST_GROUP = 65_536;
    /** Largest reward that a configuration allows; a larger one would overflow its batch. */
    public static final double LARGEST_REWARD = 1e18;
}
