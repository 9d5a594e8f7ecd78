package dev.millrace.generator.staleness;

/**
 * Decides how many prompts may be released: as long as {@code floor((N - C - 1) / B) <= eta}.
 *
 * <p>N counts the samples asked for so far, the next group included, less those that were lost on the way; C the samples
 * that the learner has consumed, in batches that made a version and in starved ones; B the samples of a batch. N - C
 * samples are thus under way, and a sample released now is trained on when at most eta more batches have gone before it, so its staleness
 * is at most eta versions. Where every batch has exactly B samples, C = version * B and this is AReaL's rule
 * {@code floor((N - 1) / B) <= version + eta} (Fu et al. 2025, arXiv 2505.24298, section 5.1); counting samples in place
 * of versions keeps it right when a batch is larger or smaller.
 *
 * <p>Immutable and thread-safe.
 */
final class StalenessCapacity {
    private final long roomSamples;
    private final int groupSize;

    /**
     * @param eta versions a sample may be behind, at least 0
     * @param batchSamples B, at least 1
     * @param groupSize samples of one prompt, at least 1; only whole groups are released
     */
    StalenessCapacity(int eta, int batchSamples, int groupSize) {
        this.roomSamples = (eta + 1L) * batchSamples;
        this.groupSize = groupSize;
    }

    /** Samples that may be under way. */
    long room() {
        return roomSamples;
    }

    /**
     * How many whole groups may be released at once; 0 if the gate is shut.
     *
     * @param underWay N - C: samples that were released and not settled, by name
     */
    long releasableGroups(long underWay) {
        return Math.max(0, (roomSamples - underWay) / groupSize);
    }
}
