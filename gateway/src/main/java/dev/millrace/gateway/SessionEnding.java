package dev.millrace.gateway;

import dev.millrace.schemas.FinishReason;
import dev.millrace.schemas.Rollout;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/**
 * How a session ends.
 *
 * @param rollout what becomes of it; null where it has no turn, and its sample is free again
 * @param trainedTurn last turn of the branch that became the rollout; -1 where there is none
 * @param finishReason of the rollout; null where there is none
 * @param error what went wrong; null where nothing did
 * @param branches further rollouts of it
 * @param isOverdue whether nobody ended it
 * @param written done when it is committed
 */
record SessionEnding(
        Session session,
        @Nullable Rollout rollout,
        int trainedTurn,
        @Nullable FinishReason finishReason,
        @Nullable String error,
        List<BranchEnding> branches,
        boolean isOverdue,
        CompletableFuture<Void> written) {

    /**
     * A further branch that becomes a rollout.
     *
     * @param sample that it is, another one of the session's group
     * @param own turns that are trained on
     */
    record BranchEnding(ReleasedSample sample, Rollout rollout, List<PlayedTurn> own) {

        /** Number of its last turn. */
        int lastTurn() {
            return own.get(own.size() - 1).record().getTurn();
        }
    }
}
