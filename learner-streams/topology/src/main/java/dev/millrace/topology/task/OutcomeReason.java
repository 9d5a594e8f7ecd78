package dev.millrace.topology.task;

/** Why a rollout left without reaching a batch; {@link #code()} is what stands in the record and in the metric. */
public enum OutcomeReason {
    /** Repeated rollout or partner record. */
    DUPLICATE("duplicate"),
    /** No score within the deadline. */
    UNSCORED("unscored"),
    /** No reward within the deadline. */
    UNREWARDED("unrewarded"),
    /** No reference score within the deadline. */
    UNREFERENCED("unreferenced"),
    /** No teacher score within the deadline. */
    UNTAUGHT("untaught"),
    /** Score without a rollout within the deadline. */
    ORPHAN_SCORE("orphan-score"),
    /** Reward without a rollout within the deadline. */
    ORPHAN_REWARD("orphan-reward"),
    /** Reference score without a rollout within the deadline. */
    ORPHAN_REFERENCE("orphan-reference"),
    /** Teacher score without a rollout within the deadline. */
    ORPHAN_TEACHER("orphan-teacher"),
    /** The scorer lacked a version. */
    VERSION_UNAVAILABLE("version-unavailable"),
    /** The rewarder failed. */
    REWARD_UNAVAILABLE("reward-unavailable"),
    /** Aborted or failed, without a separate reward. */
    UNFINISHED("unfinished"),
    /** Its group stayed short. */
    GROUP_SHORT("group-short"),
    /** All rewards of its group are equal. */
    ZERO_VARIANCE("zero-variance"),
    /** Equal rewards; admission releases the prompt again. One sample per group has this reason. */
    RESAMPLE("resample"),
    /** All tokens of its group exceed the staleness limit. */
    STALE("stale"),
    /** A stage failed on its batch; the detail names the stage. */
    STAGE_FAILED("stage-failed"),
    /** The log lost its batch; {@code millrace repair} skipped it and admission releases as many prompts. */
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
