package dev.millrace.schemas.run;

/**
 * The keys of a run's claim: one for the current claim, and one per epoch, which compaction keeps.
 */
public final class ClaimKey {
    /** The current claim. */
    public static final String VALID = "run";

    /** The last stop request with the claim at that time; later starts ignore it. */
    public static final String STOP = "stop";

    private static final String EPOCH = "epoch/";

    private ClaimKey() {}

    /** The claim that began an epoch. */
    public static String epoch(int epoch) {
        return EPOCH + epoch;
    }

    public static boolean isEpoch(String key) {
        return key.startsWith(EPOCH);
    }
}
