package dev.millrace.generator.staleness;

/**
 * When prompts are released and what they ask for.
 *
 * @param eta most versions that a rollout may be behind when trained on; 0 is synchronous, 1 overlaps one batch
 * @param batchSequences samples per step, a multiple of {@code group_size}
 * @param groupSize samples of one prompt, at least 1
 * @param taskSeed seed of the prompts
 * @param sampling how rollouts are sampled
 * @param firstVersionTimeoutMs timeout of the first version; 0 is {@code run.patience_seconds}
 * @param deadLetterLimitBatches batches of samples that may be dead-lettered, unfinished or in a failed batch without a
 *     new version; beyond it admission releases one batch a minute
 * @param maxResamples how often a prompt is released once more: because its rewards are all equal, with
 *     {@code topology.groups.zero_variance} {@code resample}, or because of {@code resample_below}
 * @param resampleBelow mean reward of a trained group below which its prompt is released once more; 0 for never
 * @param zeroVarianceLimitBatches batches of zero-variance samples without a new version before admission fails
 * @param quarantine when a generator goes into quarantine
 * @param releaseAgainAfterMs age at which admission looks for a missing sample and releases it again if the log lacks
 *     it; 0 is {@code run.patience_seconds}
 */
public record StalenessControllerConfig(
        int eta,
        int batchSequences,
        int groupSize,
        long taskSeed,
        SamplingConfig sampling,
        long firstVersionTimeoutMs,
        int deadLetterLimitBatches,
        int maxResamples,
        double resampleBelow,
        int zeroVarianceLimitBatches,
        QuarantineConfig quarantine,
        long releaseAgainAfterMs) {

    public StalenessControllerConfig {
        atLeast(0, "eta", eta);
        atLeast(1, "batch_sequences", batchSequences);
        atLeast(1, "group_size", groupSize);
        atLeast(0, "first_version_timeout_ms", firstVersionTimeoutMs);
        atLeast(1, "dead_letter_limit_batches", deadLetterLimitBatches);
        atLeast(0, "max_resamples", maxResamples);
        if (!(resampleBelow >= 0 && resampleBelow < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException("resample_below must be finite and at least 0: " + resampleBelow);
        }
        if (resampleBelow > 0 && maxResamples == 0) {
            throw new IllegalArgumentException("resample_below is " + resampleBelow
                    + " and max_resamples is 0, so no prompt is resampled; raise the latter, or set the"
                    + " former to 0");
        }
        atLeast(1, "zero_variance_limit_batches", zeroVarianceLimitBatches);
        atLeast(0, "release_again_after_ms", releaseAgainAfterMs);
        if (batchSequences % groupSize != 0) {
            throw new IllegalArgumentException(
                    "batch_sequences must be a multiple of group_size, since a batch takes whole"
                            + " groups: batch_sequences=" + batchSequences + ", group_size=" + groupSize);
        }
    }

    public static StalenessControllerConfig defaults() {
        return new StalenessControllerConfig(
                2, 256, 8, 1, SamplingConfig.defaults(), 0, 4, 1, 0, 32, QuarantineConfig.defaults(), 0);
    }

    private static void atLeast(long bound, String key, long value) {
        if (value < bound) {
            throw new IllegalArgumentException(key + " must be at least " + bound + ": " + value);
        }
    }
}
