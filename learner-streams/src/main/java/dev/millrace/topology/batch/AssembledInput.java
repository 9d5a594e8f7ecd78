package dev.millrace.topology.batch;

import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.Trajectory;
import dev.millrace.stages.BatchInput;
import dev.millrace.topology.batch.BatchMaker.Layout;
import dev.millrace.topology.batch.MemberVectors.Vectors;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** What the corrections were asked when a recorded batch was made, put together again from its trajectories. */
public final class AssembledInput {
    private AssembledInput() {
    }

    /**
     * The input of a batch.
     *
     * @param trajectories one for each of its entries, in their order, which is that of its groups
     */
    public static BatchInput of(LearnerBatch batch, List<Trajectory> trajectories) {
        List<List<Member>> groups = new ArrayList<>();
        Map<String, Vectors> vectors = new HashMap<>();
        String last = null;
        for (Trajectory trajectory : trajectories) {
            if (!trajectory.getGroupId().equals(last)) {
                groups.add(new ArrayList<>());
                last = trajectory.getGroupId();
            }
            vectors.put(trajectory.getRolloutId(), Vectors.of(trajectory));
            groups.get(groups.size() - 1).add(Member.of(trajectory, 0, 0, batch.getAssembledAtMs()));
        }
        return BatchMaker.input(Layout.of(groups, vectors), vectors, batch.getAssembledVersion(), batch.getAssembledAtMs());
    }
}
