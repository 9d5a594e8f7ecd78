package dev.millrace.scorer;

import java.util.regex.Pattern;

/**
 * How a scorer works.
 *
 * @param id unique in the run: 1 to 60 letters, digits, '-', '_', '.'; a second process with the id replaces the first
 * @param maxBatchSequences most rollouts per commit
 * @param tokenBudget most padded tokens per engine call
 * @param cachedVersions versions kept in memory, at least 2; 0 is 1 GiB of them, at most 16
 * @param entropies record entropies per position
 * @param sumSquaredProbs record the sum of squared probabilities per position
 * @param topLogProbs record proximal log-probs of the rollout's top tokens
 * @param versionWaitMs longest wait for a rollout's version
 * @param heartbeatMs interval of {@code serving} records
 * @param firstVersionTimeoutMs timeout of the first version; 0 is {@code run.patience_seconds}
 * @param commitTimeoutMs timeout of one commit; retries last {@code run.patience_seconds}
 * @param reference what {@code reference-scores} are made with: the anchor of KL
 * @param teacher what {@code teacher-scores} are made with: a policy to imitate
 */
public record ScorerConfig(
        String id,
        int maxBatchSequences,
        int tokenBudget,
        int cachedVersions,
        boolean entropies,
        boolean sumSquaredProbs,
        boolean topLogProbs,
        long versionWaitMs,
        int heartbeatMs,
        long firstVersionTimeoutMs,
        long commitTimeoutMs,
        FixedPolicyConfig reference,
        FixedPolicyConfig teacher) {
    private static final Pattern ID = Pattern.compile("[A-Za-z0-9._-]{1,60}");

    private static final int MOST_CACHED = 16;
    private static final long CACHED_BYTES = 1L << 30;

    public ScorerConfig {
        if (id == null || !ID.matcher(id).matches()) {
            throw new IllegalArgumentException("id must be 1 to 60 letters, digits, '-', '_' or '.': '" + id + "'");
        }
        atLeast(1, "max_batch_sequences", maxBatchSequences);
        atLeast(1, "token_budget", tokenBudget);
        if (cachedVersions != 0) {
            atLeast(2, "cached_versions", cachedVersions);
        }
        atLeast(1, "version_wait_ms", versionWaitMs);
        atLeast(10, "heartbeat_ms", heartbeatMs);
        atLeast(0, "first_version_timeout_ms", firstVersionTimeoutMs);
        atLeast(1, "commit_timeout_ms", commitTimeoutMs);
    }

    public static ScorerConfig defaults() {
        return new ScorerConfig(
                "scorer-0",
                256,
                16_384,
                0,
                false,
                false,
                false,
                2_000,
                1_000,
                0,
                60_000,
                FixedPolicyConfig.defaults(),
                FixedPolicyConfig.defaults());
    }

    /**
     * How many versions of a policy are kept at hand, at least 2.
     *
     * @param parameters of the policy
     */
    public int cachedVersions(long parameters) {
        return cachedVersions > 0
                ? cachedVersions
                : (int) Math.max(2, Math.min(MOST_CACHED, CACHED_BYTES / (Float.BYTES * parameters)));
    }

    public FixedPolicyConfig fixed(ScorerPurpose purpose) {
        return purpose == ScorerPurpose.REFERENCE ? reference : teacher;
    }

    private static void atLeast(long bound, String key, long value) {
        if (value < bound) {
            throw new IllegalArgumentException(key + " must be at least " + bound + ": " + value);
        }
    }
}
