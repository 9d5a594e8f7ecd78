package dev.millrace.topology.join;

import dev.millrace.topology.ingress.RolloutArrival;
import java.util.Optional;

/**
 * What to do with a rollout that has just arrived, and with the score that waits for it, if there is one.
 *
 * <p>Pure: what is remembered goes in, the decision comes out.
 */
enum RolloutDecision {
    /** Its group was announced otherwise by a sibling: refuse it. */
    REFUSE_SIBLING,
    /** It has been there before. */
    DUPLICATE,
    /** Its score is waiting. */
    JOIN,
    /** A score waits under its name, but for another record of it, which did not last: that score leaves, it waits. */
    WAIT_AND_DROP_SCORE,
    /** Its score has left without it, so none will come. */
    LEAVE_UNSCORED,
    /** Its score has not come yet. */
    WAIT;

    static RolloutDecision of(RolloutArrival rollout, GroupMemory.Announcement announced, GroupMemory group,
        Optional<Waiting> score) {
        int sample = rollout.name().sampleIndex();
        if (group.hasRollout(sample)) {
            return DUPLICATE;
        }
        if (!group.agreesWith(announced)) {
            return REFUSE_SIBLING;
        }
        if (score.isPresent()) {
            return score.get().scoredOffset() == rollout.offset() ? JOIN : WAIT_AND_DROP_SCORE;
        }
        return group.hasScore(sample) && !rollout.isPutBack() ? LEAVE_UNSCORED : WAIT;
    }
}
