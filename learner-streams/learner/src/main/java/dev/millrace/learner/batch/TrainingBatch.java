package dev.millrace.learner.batch;

import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.packed.PackedMask;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/**
 * A batch with its trajectories, checked against each other: what the optimiser trains on.
 *
 * @param members one per entry, in the order in which they are trained on
 */
public record TrainingBatch(LearnerBatch batch, List<Member> members) {

    /**
     * One trajectory of a batch.
     *
     * @param entry      what the batch decided about it
     * @param mask       the mask after every stage of the batch
     */
    public record Member(BatchEntry entry, Trajectory trajectory, ByteBuffer mask) {

        public int trainedTokens() {
            return entry.getTrainedTokens();
        }
    }

    public TrainingBatch {
        members = List.copyOf(members);
    }

    /**
     * Joins a batch with the trajectories of its entries, in their order.
     *
     * @throws InconsistentBatchException naming the first entry that does not fit its trajectory
     */
    public static TrainingBatch of(LearnerBatch batch, List<Trajectory> trajectories) {
        MemberCheck check = new MemberCheck(batch);
        List<Member> members = new ArrayList<>(trajectories.size());
        long trained = 0;
        for (int i = 0; i < trajectories.size(); i++) {
            BatchEntry entry = batch.getEntries().get(i);
            Trajectory trajectory = trajectories.get(i);
            Member member =
                    new Member(entry, trajectory, entry.getMask() == null ? trajectory.getMask() : entry.getMask());
            check.require(member);
            members.add(member);
            trained += member.trainedTokens();
        }
        check.requireTotals(trained);
        return new TrainingBatch(batch, members);
    }

    /** The members with at least one trained token, in order. */
    public List<Member> trained() {
        return members.stream().filter(member -> member.trainedTokens() > 0).toList();
    }

    public long trainedTokens() {
        return batch.getTrainedTokens();
    }

    /** Mean reward of all members, the fully masked ones included; 0 for an empty batch. */
    public double meanReward() {
        return members.stream()
                .mapToDouble(member -> member.entry().getReward())
                .average()
                .orElse(0);
    }

    static int trainedTokens(ByteBuffer mask) {
        return PackedMask.count(mask);
    }
}
