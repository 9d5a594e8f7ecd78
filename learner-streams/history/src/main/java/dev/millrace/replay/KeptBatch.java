package dev.millrace.replay;

import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.Trajectory;
import java.util.List;

/**
 * A recorded batch as an alternative would have made it, and what it is made of.
 *
 * @param batch the recorded one under the alternative's decisions; its entries still name the places of the run's trajectories
 * @param trajectories one for each entry, in their order: the run's, with the log-probs that the alternative saw and the
 *     importance weights that it makes of them
 */
public record KeptBatch(LearnerBatch batch, List<Trajectory> trajectories) {

    /** Takes what alternatives make of the batches of a run. */
    public interface Keeper {
        /**
         * One step. Steps come in order, on the thread that replays.
         *
         * @param ofAlternatives one for each alternative but the first, which is the run's own, in their order
         */
        void keep(List<KeptBatch> ofAlternatives);
    }
}
