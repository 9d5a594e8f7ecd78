package dev.millrace.learner.repair;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.learner.repair.RunExaminer.WaysOut;
import dev.millrace.learner.repair.Way.Kind;
import java.util.List;
import java.util.OptionalDouble;
import java.util.OptionalLong;
import org.junit.jupiter.api.Test;

class WaysOutTest {
    private final TrainingPast past = new TrainingPast();
    private final SamplingCost cost = new SamplingCost(OptionalDouble.of(0.5), 10);

    private WaysOut from(OptionalLong goodVersion) {
        return new WaysOut(words -> "millrace " + words, past, cost, goodVersion);
    }

    @Test
    void shouldCountWhatIsUnderWayAsLostByANewEpoch() {
        assertThat(from(OptionalLong.of(7)).newEpoch())
                .containsExactly(new Way(
                        Kind.NEW_EPOCH,
                        "continues from version 7 in a new epoch; rollouts in flight are superseded",
                        OptionalDouble.of(5),
                        "millrace rollback --to-version 7"));
    }

    @Test
    void shouldOfferNoNewEpochWhereNoVersionCanBeRead() {
        assertThat(from(OptionalLong.empty()).newEpoch()).isEmpty();
        assertThat(from(OptionalLong.empty()).firstOfEpoch(3)).isEmpty();
    }

    @Test
    void shouldCountEveryBatchThatIsGivenUpAsLargeAsTheLargestThereIs() {
        past.batch(3, 16, 0);
        past.batch(4, 64, 2);

        assertThat(from(OptionalLong.of(7)).skip(List.of(5L, 6L)))
                .isEqualTo(new Way(
                        Kind.SKIP_BATCH,
                        "skips batches 5 to 6 and releases as many prompts; the learner continues with batch 7",
                        OptionalDouble.of(64),
                        "millrace repair --do skip-batch"));
    }

    @Test
    void shouldLoseNothingWhereAnOffsetIsMovedOrATransactionAborted() {
        WaysOut ways = from(OptionalLong.empty());

        assertThat(List.of(ways.moveOffset(12), ways.abortTransaction(), WaysOut.await("the learner continues")))
                .allSatisfy(way -> assertThat(way.trajectorySeconds()).hasValue(0))
                .extracting(Way::command)
                .containsExactly("millrace repair --do move-offset", "millrace repair --do abort-transaction", "");
    }
}
