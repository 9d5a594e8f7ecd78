package dev.millrace.schemas.run;

/**
 * The keys of a run's claim: one that is always the valid one, and one for each epoch, which compaction keeps.
 */
public final class ClaimKey {
    /** The claim that counts. */
    public static final String VALID = "run";

    private ClaimKey() {}

    /** The claim with which an epoch began. */
    public static String epoch(int epoch) {
        return "epoch/" + epoch;
    }
}
