package dev.millrace.learner.batch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.learner.SyntheticRollouts;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.schemas.packed.PackedMask;
import java.util.Arrays;
import java.util.List;
import org.apache.avro.specific.SpecificRecord;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class TrainingBatchTest {
    private final SyntheticRollouts rollouts = new SyntheticRollouts(1);
    private final Trajectory first = rollouts.next();
    private final Trajectory second = rollouts.next();

    @AfterEach
    void closeSession() {
        rollouts.close();
    }

    @Test
    void shouldKeepEveryMemberAndTrainOnThoseWithTokens() {
        LearnerBatch batch = SyntheticRollouts.batch(
                3, List.of(SyntheticRollouts.masked(first, 0, 10), SyntheticRollouts.entry(second, 0, 11)));

        TrainingBatch training = TrainingBatch.of(batch, List.of(first, second));

        assertThat(training.members()).hasSize(2);
        assertThat(training.trained())
                .extracting(member -> member.entry().getRolloutId())
                .containsExactly("g0/1");
        assertThat(training.trainedTokens()).isEqualTo(PackedMask.count(second.getMask()));
        assertThat(training.meanReward()).isCloseTo((first.getReward() + second.getReward()) / 2, within(1e-12));
    }

    @Test
    void shouldTakeAnEmptyBatch() {
        TrainingBatch training = TrainingBatch.of(SyntheticRollouts.batch(3, List.of()), List.of());

        assertThat(training.trained()).isEmpty();
        assertThat(training.meanReward()).isZero();
    }

    @Test
    void shouldRefuseAPointerToAnotherRollout() {
        assertRefused(
                SyntheticRollouts.entry(first, 0, 10),
                second,
                "references rollout g0/1 of run run-1 epoch 0 policy policy");
    }

    @Test
    void shouldRefuseATrajectoryOfAnotherRun() {
        BatchEntry entry = SyntheticRollouts.entry(first, 0, 10);
        assertRefused(
                entry, set(first, "run_id", "run-2"), "references rollout g0/0 of run run-2 epoch 0 policy policy");
    }

    @Test
    void shouldRefuseAMaskThatTrainsOnContext() {
        BatchEntry entry = SyntheticRollouts.entry(first, 0, 10);
        byte[] all = new byte[PackedMask.length(first.getMask())];
        Arrays.fill(all, (byte) 1);
        byte[] own = all.clone();
        own[1] = 0;
        set(first, "mask", PackedMask.of(own));
        set(entry, "mask", PackedMask.of(all));

        assertRefused(entry, first, "has the mask 1 at token 1, where the trajectory's own is 0");
    }

    @Test
    void shouldRefuseATokenCountThatIsNotTheMasks() {
        int trained = PackedMask.count(first.getMask());
        BatchEntry entry = set(SyntheticRollouts.entry(first, 0, 10), "trained_tokens", trained + 1);

        assertRefused(entry, first, "declares " + (trained + 1) + " trained tokens, its mask has " + trained);
    }

    @Test
    void shouldRefuseVectorsOfAnotherLengthThanTheResponse() {
        int tokens = PackedInts.length(first.getResponseTokens());
        BatchEntry entry = SyntheticRollouts.entry(first, 0, 10);
        set(first, "proximal_log_probs", PackedFloats.of(new float[tokens + 1]));

        assertRefused(
                entry,
                first,
                "has " + tokens + " response tokens and " + (tokens + 1) + " values of proximal log-probs");
    }

    @Test
    void shouldRefuseAnAdvantageThatIsNoNumber() {
        BatchEntry entry = set(SyntheticRollouts.entry(first, 0, 10), "advantage", Double.NaN);

        assertRefused(entry, first, "and the advantage NaN; both must be finite in single precision");
    }

    @Test
    void shouldRefuseTotalsAndStepScalesThatCannotBe() {
        BatchEntry entry = SyntheticRollouts.entry(first, 0, 10);
        LearnerBatch wrongTotal = set(SyntheticRollouts.batch(3, List.of(entry)), "trained_tokens", 99L);
        assertThatThrownBy(() -> TrainingBatch.of(wrongTotal, List.of(first)))
                .isInstanceOf(InconsistentBatchException.class)
                .hasMessage("batch 3 declares 99 trained tokens, its entries have " + entry.getTrainedTokens());

        for (double scale : new double[] {Double.NaN, -0.5, Double.POSITIVE_INFINITY}) {
            LearnerBatch wrongScale = set(SyntheticRollouts.batch(3, List.of(entry)), "step_scale", scale);
            assertThatThrownBy(() -> TrainingBatch.of(wrongScale, List.of(first)))
                    .isInstanceOf(InconsistentBatchException.class)
                    .hasMessage("batch 3 has a step scale that is not finite and at least 0: " + scale);
        }
    }

    private static void assertRefused(BatchEntry entry, Trajectory trajectory, String what) {
        LearnerBatch batch = SyntheticRollouts.batch(3, List.of(entry));
        assertThatThrownBy(() -> TrainingBatch.of(batch, List.of(trajectory)))
                .isInstanceOf(InconsistentBatchException.class)
                .hasMessageStartingWith("batch 3, rollout " + entry.getRolloutId() + " at partition 0 offset 10: ")
                .hasMessageEndingWith(what);
    }

    private static <T extends SpecificRecord> T set(T record, String field, Object value) {
        record.put(record.getSchema().getField(field).pos(), value);
        return record;
    }
}
