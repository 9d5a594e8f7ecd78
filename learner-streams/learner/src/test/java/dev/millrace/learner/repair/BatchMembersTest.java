package dev.millrace.learner.repair;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.learner.SyntheticRollouts;
import dev.millrace.learner.repair.RunExaminer.BatchMembers;
import dev.millrace.log.scan.OffsetRange;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.Trajectory;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class BatchMembersTest {
    private final SyntheticRollouts rollouts = new SyntheticRollouts(3);
    private final BatchMembers members = new BatchMembers("trajectories");

    @AfterEach
    void close() {
        rollouts.close();
    }

    private static LearnerBatch batch(long id, Trajectory trajectory, long offset) {
        return SyntheticRollouts.batch(id, List.of(SyntheticRollouts.entry(trajectory, 0, offset)));
    }

    @Test
    void shouldFindABatchUsableWhoseTrajectoriesAreThere() {
        members.holds(0, new OffsetRange(70, 72));
        members.add(batch(4, rollouts.next(), 70));
        members.add(batch(5, rollouts.next(), 71));

        assertThat(members.whyUnusable(4)).isEmpty();
        assertThat(members.whyUnusable(5)).isEmpty();
    }

    @Test
    void shouldSayWhichTrajectoriesOfABatchTheLogDoesNotHold() {
        members.holds(0, new OffsetRange(70, 72));
        members.add(batch(3, rollouts.next(), 69));
        members.add(batch(5, rollouts.next(), 72));

        assertThat(members.whyUnusable(3))
                .contains("it names offsets 69 to 69 of trajectories-0, which holds 70 to 71");
        assertThat(members.whyUnusable(5))
                .contains("it names offsets 72 to 72 of trajectories-0, which holds 70 to 71");
    }

    @Test
    void shouldSayThatAPartitionHoldsNothing() {
        members.add(batch(4, rollouts.next(), 0));

        assertThat(members.whyUnusable(4)).contains("it names offsets 0 to 0 of trajectories-0, which holds none");
    }

    @Test
    void shouldNameTheBatchThatHadARolloutBefore() {
        Trajectory trajectory = rollouts.next();
        members.holds(0, new OffsetRange(0, 100));
        members.add(batch(4, trajectory, 70));
        members.add(batch(4, trajectory, 70));
        members.add(batch(9, trajectory, 71));

        assertThat(members.whyUnusable(4)).as("a copy of itself").isEmpty();
        assertThat(members.whyUnusable(9))
                .contains("it has rollout " + trajectory.getRolloutId() + ", which batch 4 had, so the log may have"
                        + " lost the topology's offsets");
    }
}
