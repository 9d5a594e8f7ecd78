package dev.millrace.corrections.rollout;

import java.util.Map;
import java.util.Optional;

/**
 * What a rollout correction found and did. The arrays belong to the caller.
 *
 * @param weights one weight per packed token, 0 at context tokens; empty if the configuration makes none. A token
 *     that was rejected keeps its weight: the mask is what takes it out
 * @param mask the batch's mask without the rejected tokens
 * @param rejectedSequences sequences that lost at least one token
 * @param metrics verl's names, such as {@code rollout_corr/kl}; every configured stage is in it
 */
public record RolloutCorrectionResult(
        Optional<float[]> weights,
        byte[] mask,
        int rejectedTokens,
        int rejectedSequences,
        Map<String, Double> metrics) {}
