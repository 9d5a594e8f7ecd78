package dev.millrace.stages;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.staleness.BatchVersions;

/**
 * A batch as it comes to the corrections.
 *
 * @param tokens layout, the trajectories' own masks, groups
 * @param logProbs one per packed token; old is NaN where it is missing
 * @param withoutOld one per sequence: whether its old log-probs are missing
 * @param rewards one per sequence
 * @param versions which version sampled which tokens
 * @param proximalVersions one per sequence: the version current when it was scored
 * @param agesMs one per sequence: how long before the batch was complete it was finished
 * @param currentVersion what staleness is counted from; no token is newer
 */
public record BatchInput(
        TokenBatch tokens,
        MemberLogProbs logProbs,
        boolean[] withoutOld,
        double[] rewards,
        BatchVersions versions,
        long[] proximalVersions,
        long[] agesMs,
        long currentVersion) {}
