package dev.millrace.replay;

import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.Trajectory;
import java.util.List;

/**
 * A recorded batch under an alternative.
 *
 * @param batch with the alternative's decisions; entries still name the run's trajectories
 * @param trajectories one per entry, with the log-probs and weights of the alternative
 */
public record KeptBatch(LearnerBatch batch, List<Trajectory> trajectories) {

    /** Takes alternatives' batches. */
    public interface Keeper {
        /**
         * Called in step order on the replaying thread.
         *
         * @param ofAlternatives one per alternative but the first, the run's own
         */
        void keep(List<KeptBatch> ofAlternatives);
    }
}
