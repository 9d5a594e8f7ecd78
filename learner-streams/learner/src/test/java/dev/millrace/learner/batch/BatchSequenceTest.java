package dev.millrace.learner.batch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.learner.SyntheticRollouts;
import dev.millrace.learner.batch.BatchReader.BatchSequence;
import dev.millrace.learner.batch.BatchReader.BatchSequence.Place;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.rollout.RefusalReason;
import dev.millrace.schemas.rollout.RefusedException;
import dev.millrace.schemas.run.RunIdentity;
import java.util.List;
import org.junit.jupiter.api.Test;

class BatchSequenceTest {
    private static final RunIdentity RUN = SyntheticRollouts.RUN;

    @Test
    void shouldTakeOneBatchAfterTheOther() throws RefusedException {
        BatchSequence sequence = new BatchSequence(RUN, -1);
        for (long id = 0; id < 3; id++) {
            assertThat(sequence.placeOf(batch(id))).isEqualTo(Place.DUE);
            sequence.consumed(id);
        }
        assertThat(sequence.next()).isEqualTo(3);
    }

    @Test
    void shouldKnowWhatWasConsumedAndHaveWhatIsAheadWait() throws RefusedException {
        BatchSequence sequence = new BatchSequence(RUN, 4);

        assertThat(sequence.placeOf(batch(4))).isEqualTo(Place.KNOWN);
        assertThat(sequence.placeOf(batch(0))).isEqualTo(Place.KNOWN);
        assertThat(sequence.placeOf(batch(5))).isEqualTo(Place.DUE);
        assertThat(sequence.placeOf(batch(6))).isEqualTo(Place.AHEAD);
        assertThat(sequence.placeOf(batch(Long.MAX_VALUE))).isEqualTo(Place.AHEAD);
    }

    @Test
    void shouldConsumeNothingOutOfItsOrder() {
        assertThatThrownBy(() -> new BatchSequence(RUN, 4).consumed(6))
                .isInstanceOf(IllegalStateException.class)
                .hasMessage("batch 6 was trained on after batch 4");
    }

    @Test
    void shouldRefuseOtherRunsPoliciesEpochsAndNegativeIds() {
        assertRefused(
                new RunIdentity("run-2", 0, "policy"),
                batch(0),
                RefusalReason.WRONG_RUN,
                "run_id is run-1, this learner trains run-2");
        assertRefused(
                new RunIdentity("run-1", 1, "policy"),
                batch(0),
                RefusalReason.WRONG_EPOCH,
                "epoch is 0, this learner trains epoch 1");
        assertRefused(
                new RunIdentity("run-1", 0, "p2"),
                batch(0),
                RefusalReason.IDENTITY,
                "policy_id is policy, this learner trains p2");
        assertRefused(RUN, batch(-1), RefusalReason.IDENTITY, "batch_id must be at least 0: -1");
        LearnerBatch later = batch(0);
        later.put(later.getSchema().getField("epoch").pos(), 3);
        assertRefused(RUN, later, RefusalReason.WRONG_EPOCH, "epoch is 3, this learner trains epoch 0");
    }

    private static void assertRefused(RunIdentity run, LearnerBatch batch, RefusalReason reason, String sentence) {
        assertThatThrownBy(() -> new BatchSequence(run, -1).placeOf(batch))
                .isInstanceOfSatisfying(
                        RefusedException.class,
                        e -> assertThat(e.refusal().reason()).isEqualTo(reason))
                .hasMessage(sentence);
    }

    private static LearnerBatch batch(long id) {
        return SyntheticRollouts.batch(id, List.of());
    }
}
