package dev.millrace.scorer;

import java.util.regex.Pattern;

/**
 * How a scorer works.
 *
 * @param id of this scorer, unique in its run: letters, digits, '-', '_' and '.', 1 to 60 of them; a second scorer with
 *     the same id takes the place of the first
 * @param maxBatchSequences most rollouts scored and committed together
 * @param tokenBudget padded tokens that go through the engine at once; bounds memory
 * @param cachedVersions versions whose weights are kept at hand, at least 2: rollouts that are behind need theirs again; 0 as many as
 *     are 1 GiB together, 16 at most
 * @param entropies whether scores carry the entropy at each position
 * @param sumSquaredProbs whether scores carry the sum of squared probabilities at each position
 * @param topLogProbs whether scores carry the proximal policy's log-probs of the likeliest tokens that a rollout names
 * @param versionWaitMs longest wait for a version that a rollout names and this scorer has not seen yet
 * @param heartbeatMs interval of the records that say which version is served
 * @param firstVersionTimeoutMs longest wait for the first policy version; 0 for {@code run.patience_seconds}
 * @param commitTimeoutMs longest wait for one attempt at a commit; attempts go on for {@code run.patience_seconds}
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

    /** The policy that a reference or a teacher scorer scores with. */
    public FixedPolicyConfig fixed(ScorerPurpose purpose) {
        return purpose == ScorerPurpose.REFERENCE ? reference : teacher;
    }

    private static void atLeast(long bound, String key, long value) {
        if (value < bound) {
            throw new IllegalArgumentException(key + " must be at least " + bound + ": " + value);
        }
    }
}
