package dev.millrace.schemas.rollout;

/**
 * What rollouts are held to beyond what they claim about themselves.
 *
 * @param tokenizerHash vocabulary that they must name; empty takes any, as long as they name one
 * @param vocabularySize token ids must be below this; 0 for no check
 * @param maxPositions most tokens of prompt and response together; 0 leaves it unchecked
 * @param maxGroupSize largest group, at least 1
 * @param maxReward largest magnitude of a reward, greater than 0
 */
public record RolloutLimits(
        String tokenizerHash, int vocabularySize, int maxPositions, int maxGroupSize, double maxReward) {
    /** No group that any configuration allows is larger. */
    public static final int LARGEST_GROUP = 65_536;
    /** No reward that any configuration allows is larger; one that is would overflow its batch. */
    public static final double LARGEST_REWARD = 1e18;
}
