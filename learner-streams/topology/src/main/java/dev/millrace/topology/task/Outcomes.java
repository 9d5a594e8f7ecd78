package dev.millrace.topology.task;

import dev.millrace.schemas.LogCoordinates;
import dev.millrace.schemas.Outcome;
import dev.millrace.schemas.run.RunIdentity;

/** Makes the outcome records of one stage of a run. */
public final class Outcomes {
    /** Outcome's value for a version that is not known. */
    public static final long UNKNOWN_VERSION = -1;

    private final RunIdentity run;
    private final String stage;

    /** @param stage who decides, such as join or groups */
    public Outcomes(RunIdentity run, String stage) {
        this.run = run;
        this.stage = stage;
    }

    /**
     * @param newestVersion of any token of it; {@link #UNKNOWN_VERSION} where not known
     * @param source the rollout's record, or the score's where it is about a score
     * @param detail a sentence with the values that decided
     */
    public Outcome of(
            OutcomeReason reason,
            String groupId,
            String rolloutId,
            long newestVersion,
            LogCoordinates source,
            long decidedAtMs,
            String detail) {
        return new Outcome(
                run.runId(),
                run.epoch(),
                rolloutId,
                groupId,
                stage,
                reason.code(),
                detail,
                newestVersion,
                source,
                decidedAtMs);
    }
}
