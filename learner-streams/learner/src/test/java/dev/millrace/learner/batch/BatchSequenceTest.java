package dev.millrace.learner.batch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.learner.SyntheticRollouts;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.refusal.RefusalReason;
import dev.millrace.schemas.refusal.RefusedException;
import dev.millrace.schemas.run.RunIdentity;
import java.util.List;
import org.junit.jupiter.api.Test;

class BatchSequenceTest {
    private static final RunIdentity RUN = SyntheticRollouts.RUN;

    @Test
    void shouldTakeOneBatchAfterTheOther() throws RefusedException {
        BatchSequence sequence = new BatchSequence(RUN, -1, true);
        for (long id = 0; id < 3; id++) {
            assertThat(sequence.isNext(batch(id), "b-0@1")).isTrue();
            sequence.trained(id);
        }
        assertThat(sequence.next()).isEqualTo(3);
    }

    @Test
    void shouldStopAtAGapNamingWhatIsMissing() {
        BatchSequence sequence = new BatchSequence(RUN, 4, true);

        assertThatThrownBy(() -> sequence.isNext(batch(6), "batches-0@9"))
                .isInstanceOf(OutOfSequenceException.class)
                .hasMessageStartingWith("batch 5 is missing: after batch 4 comes batch 6 at batches-0@9.");
        assertThatThrownBy(() -> new BatchSequence(RUN, -1, false).isNext(batch(2), "batches-0@9"))
                .hasMessageStartingWith("batch 0 is missing: the first on the log is batch 2 at batches-0@9.");
    }

    @Test
    void shouldNeverTrainOnABatchAgainThatLiesBehindItsOwnOffset() {
        BatchSequence sequence = new BatchSequence(RUN, 4, true);

        assertThatThrownBy(() -> sequence.isNext(batch(4), "batches-0@9"))
                .isInstanceOf(OutOfSequenceException.class)
                .hasMessageStartingWith(
                        "batch 4 at batches-0@9 was trained on already: the newest version was made by batch 4");
    }

    @Test
    void shouldPassOverTrainedBatchesWhereNoOffsetWasCommitted() throws RefusedException {
        BatchSequence sequence = new BatchSequence(RUN, 1, false);

        assertThat(sequence.isNext(batch(0), "b-0@0")).isFalse();
        assertThat(sequence.isNext(batch(1), "b-0@1")).isFalse();
        assertThat(sequence.isNext(batch(2), "b-0@2")).isTrue();
    }

    @Test
    void shouldRefuseOtherRunsPoliciesAndOlderEpochs() {
        assertRefused(
                new RunIdentity("run-2", 0, "policy"),
                RefusalReason.WRONG_RUN,
                "run_id is run-1, this learner trains run-2");
        assertRefused(
                new RunIdentity("run-1", 1, "policy"),
                RefusalReason.WRONG_EPOCH,
                "epoch is 0, this learner trains epoch 1");
        assertRefused(
                new RunIdentity("run-1", 0, "p2"),
                RefusalReason.IDENTITY,
                "policy_id is policy, this learner trains p2");
    }

    @Test
    void shouldStopWhenTheRunHasGoneOnInALaterEpoch() {
        LearnerBatch later = batch(0);
        later.put(later.getSchema().getField("epoch").pos(), 3);

        assertThatThrownBy(() -> new BatchSequence(RUN, -1, true).isNext(later, "batches-0@9"))
                .isInstanceOf(OutOfSequenceException.class)
                .hasMessageStartingWith(
                        "batch 0 at batches-0@9 is of epoch 3, but this learner was started for epoch 0");
    }

    private static void assertRefused(RunIdentity run, RefusalReason reason, String sentence) {
        assertThatThrownBy(() -> new BatchSequence(run, -1, true).isNext(batch(0), "b-0@0"))
                .isInstanceOfSatisfying(
                        RefusedException.class,
                        e -> assertThat(e.refusal().reason()).isEqualTo(reason))
                .hasMessage(sentence);
    }

    private static LearnerBatch batch(long id) {
        return SyntheticRollouts.batch(id, List.of());
    }
}
