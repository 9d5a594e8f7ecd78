package dev.millrace.topology.join;

import dev.millrace.topology.ingress.ScoreArrival;
import java.util.Optional;

/**
 * What to do with a score that has just arrived.
 *
 * <p>Pure: what is remembered goes in, the decision comes out.
 */
enum ScoreDecision {
    /** The sample has a score already. */
    DUPLICATE,
    /** It scores a record that is not the one that was taken for the sample: a repetition of it. */
    OF_A_REPETITION,
    /** Its rollout is waiting. */
    JOIN,
    /** Its rollout has left without it. */
    TOO_LATE,
    /** Its rollout has not come yet. */
    WAIT;

    static ScoreDecision of(ScoreArrival score, GroupMemory group, Optional<Waiting> rollout) {
        int sample = score.name().sampleIndex();
        if (group.hasScore(sample)) {
            return DUPLICATE;
        }
        if (rollout.isPresent()) {
            return rollout.get().offset() == score.scoredOffset() ? JOIN : OF_A_REPETITION;
        }
        return group.hasRollout(sample) ? TOO_LATE : WAIT;
    }
}
