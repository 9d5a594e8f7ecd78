package dev.millrace.schemas.rollout;

import dev.millrace.schemas.LogCoordinates;
import dev.millrace.schemas.run.RunIdentity;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/** Checks that a record is of this run and epoch and has its own key; the first check of any record. */
public final class OwnershipCheck {
    private static final int SHOWN_KEY_BYTES = 64;

    private final RunIdentity run;

    public OwnershipCheck(RunIdentity run) {
        this.run = run;
    }

    /** @throws RefusedException if the record is of another run or epoch */
    public void requireOurs(String runId, int epoch) throws RefusedException {
        if (!run.runId().equals(runId)) {
            throw new RefusedException(
                    RefusalReason.WRONG_RUN,
                    "run_id",
                    "the record is of run '" + runId + "', this is run '" + run.runId() + "'");
        }
        if (run.epoch() != epoch) {
            throw new RefusedException(
                    RefusalReason.WRONG_EPOCH,
                    "epoch",
                    "the record is of epoch " + epoch + ", the run is in epoch " + run.epoch());
        }
    }

    /** @throws RefusedException if the record is of another policy */
    public void requirePolicy(String policyId) throws RefusedException {
        if (!run.policyId().equals(policyId)) {
            throw new RefusedException(
                    RefusalReason.IDENTITY,
                    "policy_id",
                    "the record is of policy '" + policyId + "', this run trains '" + run.policyId() + "'");
        }
    }

    /** @throws RefusedException if the coordinates are not those of a record in a partition of the rollouts topic */
    public static void requireRollout(LogCoordinates source, String rolloutsTopic, int partition)
            throws RefusedException {
        if (!source.getTopic().equals(rolloutsTopic) || source.getPartition() != partition || source.getOffset() < 0) {
            throw new RefusedException(
                    RefusalReason.IDENTITY,
                    "rollout_source",
                    "rollout_source must be a record of " + rolloutsTopic + "-" + partition + ": " + source.getTopic()
                            + "-" + source.getPartition() + "@" + source.getOffset());
        }
    }

    /**
     * @param key as received, may be null
     * @param field field that the key must equal
     * @throws RefusedException if the key is not the UTF-8 of the expected text
     */
    public static void requireKey(byte @Nullable [] key, String expected, String field) throws RefusedException {
        if (key == null || !Arrays.equals(key, expected.getBytes(StandardCharsets.UTF_8))) {
            throw new RefusedException(
                    RefusalReason.WRONG_KEY,
                    "key",
                    "the key must be the " + field + " '" + expected + "': "
                            + (key == null ? "there is none" : show(key)));
        }
    }

    private static String show(byte[] key) {
        String text = new String(key, 0, Math.min(key.length, SHOWN_KEY_BYTES), StandardCharsets.UTF_8);
        return "'" + text
                + (key.length > SHOWN_KEY_BYTES ? "' and " + (key.length - SHOWN_KEY_BYTES) + " bytes more" : "'");
    }
}
