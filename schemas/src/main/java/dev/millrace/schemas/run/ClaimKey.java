package dev.millrace.schemas.run;

/**
 * The keys of a run's claim: one that is always the valid one, and one for each epoch, which compaction keeps.
 */
public final class ClaimKey {
    /** The claim that counts. */
    public static final String VALID = "run";

    /** The last request to stop: the claim at that time. Who starts later passes over it. */
    public static final String STOP = "stop";

    private static final String EPOCH = "epoch/";

    private ClaimKey() {}

    /** The claim with which an epoch began. */
    public static String epoch(int epoch) {
        return EPOCH + epoch;
    }

    /** Whether it is the key of an epoch's claim. */
    public static boolean isEpoch(String key) {
        return key.startsWith(EPOCH);
    }
}
