package dev.millrace.learner.batch;

import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.learner.SyntheticRollouts;
import dev.millrace.learner.batch.BatchReader.TrainedTrajectories;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.rollout.RefusedException;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class TrainedTrajectoriesTest {
    private final SyntheticRollouts rollouts = new SyntheticRollouts(3);
    private final TrainedTrajectories trained = new TrainedTrajectories();

    @AfterEach
    void close() {
        rollouts.close();
    }

    private static LearnerBatch batch(long id, Trajectory trajectory, long offset) {
        BatchEntry entry = SyntheticRollouts.entry(trajectory, 0, offset);
        return SyntheticRollouts.batch(id, List.of(entry));
    }

    @Test
    void shouldRefuseABatchThatIsACopyOfAnotherUnderAnotherId() {
        Trajectory trajectory = rollouts.next();
        trained.add(batch(4, trajectory, 70));

        assertThatCode(() -> trained.requireNew(batch(4, trajectory, 70)))
                .as("the same again")
                .doesNotThrowAnyException();
        assertThatThrownBy(() -> trained.requireNew(batch(5, trajectory, 70)))
                .isInstanceOf(RefusedException.class)
                .hasMessageContaining("the trajectory at partition 0 offset 70 was trained on in batch 4");
    }

    @Test
    void shouldTakeAnotherTrajectoryThatLiesWhereTheLogLostOne() {
        trained.add(batch(4, rollouts.next(), 70));

        assertThatCode(() -> trained.requireNew(batch(5, rollouts.next(), 70))).doesNotThrowAnyException();
    }
}
