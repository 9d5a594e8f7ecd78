package dev.millrace.generator.staleness;

/**
 * When prompts are released and what they ask for.
 *
 * @param eta most versions a rollout may be behind when it is trained on: 0 waits for every step, 1 generates the next
 *     batch while this one is trained on, more keeps more batches under way
 * @param batchSequences samples the learner takes per step; a multiple of {@code group_size}
 * @param groupSize samples of one prompt, at least 1
 * @param taskSeed of the series of prompts
 * @param sampling how rollouts are sampled
 * @param firstVersionTimeoutMs longest wait for the first policy version; 0 for {@code run.patience_seconds}
 * @param deadLetterLimitBatches how many batches' worth of samples may be dead-lettered, or leave unfinished or with a batch that failed, while no new version appears; beyond
 *     that only one batch is released a minute, until a version appears
 * @param maxResamples how often a prompt is released once more when {@code topology.groups.zero_variance} is
 *     {@code resample} and all its samples were rewarded alike; after that the next prompt takes its place
 * @param zeroVarianceLimitBatches how many batches' worth of samples may leave for being rewarded alike while no new
 *     version appears; beyond that the policy learns nothing from these prompts any more and admission fails
 * @param quarantine when a generator goes into quarantine
 * @param releaseAgainAfterMs after how long under way it is looked on the log for a sample that neither came nor left; it is
 *     released again under its name only if the log has surely nothing of it; 0 for {@code run.patience_seconds}
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
                2, 256, 8, 1, SamplingConfig.defaults(), 0, 4, 1, 32, QuarantineConfig.defaults(), 0);
    }

    private static void atLeast(long bound, String key, long value) {
        if (value < bound) {
            throw new IllegalArgumentException(key + " must be at least " + bound + ": " + value);
        }
    }
}
