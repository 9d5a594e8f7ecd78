package dev.millrace.gateway;

import dev.millrace.schemas.FinishReason;
import dev.millrace.schemas.Rollout;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/**
 * End of a session.
 *
 * @param rollout null without turns; the sample is then free again
 * @param trainedTurn last turn of the rollout's branch; -1 for none
 * @param error null for none
 * @param isOverdue ended by a limit
 */
record SessionEnding(
        Session session,
        @Nullable Rollout rollout,
        int trainedTurn,
        @Nullable String error,
        List<BranchEnding> branches,
        boolean isOverdue,
        CompletableFuture<Void> written) {

    /** Null without a rollout. */
    @Nullable
    FinishReason finishReason() {
        return rollout == null ? null : rollout.getFinishReason();
    }

    /** An extra branch that becomes a rollout. */
    record BranchEnding(ReleasedSample sample, Rollout rollout, List<PlayedTurn> own) {

        int lastTurn() {
            return own.get(own.size() - 1).record().getTurn();
        }
    }
}
