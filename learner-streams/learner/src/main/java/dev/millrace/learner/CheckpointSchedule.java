package dev.millrace.learner;

import dev.millrace.schemas.PolicyVersion;
import dev.millrace.weights.Checkpoints;
import dev.millrace.weights.VersionFacts;
import dev.millrace.weights.VersionSize;
import dev.millrace.weights.WeightsConfig;

/**
 * Decides with which versions the optimiser's state goes: a run's or an epoch's first, the last that it is to make, and between them after
 * so many versions or so long a time.
 *
 * <p>The time is there because what is learnt again must still be on the log: its batches and trajectories are removed by age. Used by one
 * thread.
 */
final class CheckpointSchedule {
    private final WeightsConfig config;
    private long longestMs = Long.MAX_VALUE;
    private long lastStep = Long.MAX_VALUE;
    private long newest = -1;
    private long newestAtMs;

    CheckpointSchedule(WeightsConfig config) {
        this.config = config;
    }

    /**
     * @param newLongestMs longest time between two, in which nothing is removed of what lies behind the first
     * @param newLastStep version with which a run is to end, so that it goes on at once if it does go on
     */
    void within(long newLongestMs, long newLastStep) {
        longestMs = newLongestMs;
        lastStep = newLastStep;
    }

    boolean isDue(VersionFacts facts, VersionSize size) {
        int every = config.checkpointEvery(size);
        if (facts.version() == 0) {
            return every == 1; // otherwise it is known to be zeros
        }
        if (facts.parentEpoch() != null) {
            return true; // a new epoch rests on nothing of an older one
        }
        return newest < 0
                || facts.version() - newest >= every
                || facts.version() >= lastStep
                || facts.publishedAtMs() - newestAtMs >= longestMs;
    }

    /** A version is on the log, or was found there. */
    void published(PolicyVersion manifest) {
        if (Checkpoints.is(manifest)) {
            newest = manifest.getVersion();
            newestAtMs = manifest.getPublishedAtMs();
        }
    }
}
