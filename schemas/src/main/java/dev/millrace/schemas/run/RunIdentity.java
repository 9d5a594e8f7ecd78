package dev.millrace.schemas.run;

import java.util.regex.Pattern;

/**
 * Identity of a run in a record: run id, epoch, and policy.
 *
 * <p>A rollback to an older version starts a new epoch; an ordinary restart keeps it. Readers accept records of exactly
 * this run and epoch.
 *
 * @param runId letters, digits, '-', '_' and '.', 1 to 100 of them, so that it can be part of a topic or file name
 * @param epoch at least 0
 * @param policyId like {@code runId}
 */
public record RunIdentity(String runId, int epoch, String policyId) {
    private static final Pattern NAME = Pattern.compile("[A-Za-z0-9._-]{1,100}");

    public RunIdentity {
        requireName("run id", runId);
        requireName("policy id", policyId);
        if (epoch < 0) {
            throw new IllegalArgumentException("epoch must be at least 0: " + epoch);
        }
    }

    public boolean owns(String recordRunId, int recordEpoch) {
        return runId.equals(recordRunId) && epoch == recordEpoch;
    }

    private static void requireName(String what, String value) {
        if (value == null || !NAME.matcher(value).matches()) {
            throw new IllegalArgumentException(
                    what + " must be 1 to 100 letters, digits, '-', '_' or '.': '" + value + "'");
        }
    }
}
