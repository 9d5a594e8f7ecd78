package dev.millrace.topology.task;

/** Why a rollout left without reaching a batch; {@link #code()} is what stands in the record and in the metric. */
public enum OutcomeReason {
    /** The same rollout, or the same partner of it, had been there before. */
    DUPLICATE("duplicate"),
    /** No score came within its time. */
    UNSCORED("unscored"),
    /** No reward came within its time. */
    UNREWARDED("unrewarded"),
    /** No reference score came within its time. */
    UNREFERENCED("unreferenced"),
    /** No teacher score came within its time. */
    UNTAUGHT("untaught"),
    /** A score whose rollout did not come within its time, or had left before. */
    ORPHAN_SCORE("orphan-score"),
    /** A reward whose rollout did not come within its time, or had left before. */
    ORPHAN_REWARD("orphan-reward"),
    /** A reference score whose rollout did not come within its time, or had left before. */
    ORPHAN_REFERENCE("orphan-reference"),
    /** A teacher score whose rollout did not come within its time, or had left before. */
    ORPHAN_TEACHER("orphan-teacher"),
    /** A scorer could not have a version that it needed. */
    VERSION_UNAVAILABLE("version-unavailable"),
    /** Who was to reward it could not. */
    REWARD_UNAVAILABLE("reward-unavailable"),
    /** It was aborted or has failed, and nobody rewarded it apart. */
    UNFINISHED("unfinished"),
    /** Its group stayed short for too long. */
    GROUP_SHORT("group-short"),
    /** All rewards of its group are equal, so none of them says anything. */
    ZERO_VARIANCE("zero-variance"),
    /** All rewards of its group are equal, and its prompt is to be sampled once more; one sample of the group says so. */
    RESAMPLE("resample"),
    /** Every token of its group is staler than the limit. */
    STALE("stale"),
    /** A stage of the algorithm failed on its batch, which was given up; the detail names the stage. */
    STAGE_FAILED("stage-failed"),
    /** Its batch was lost with a part of the log and was given up; millrace repair says so, and as many prompts are released. */
    BATCH_LOST("batch-lost");

    private final String code;

    OutcomeReason(String code) {
        this.code = code;
    }

    /** Lower case with dashes. */
    public String code() {
        return code;
    }
}
