package dev.millrace.learner;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.corrections.stage.ControlState;
import dev.millrace.learner.batch.BatchProgress;
import dev.millrace.learner.batch.IncomingBatch;
import dev.millrace.learner.batch.InconsistentBatchException;
import dev.millrace.learner.step.StepFigures;
import dev.millrace.learner.step.StepMetrics;
import dev.millrace.learner.step.StepReport;
import dev.millrace.policy.autodiff.AdamW;
import dev.millrace.policy.weights.Weights;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.StepEntry;
import dev.millrace.schemas.TensorLocation;
import dev.millrace.schemas.Trajectory;
import dev.millrace.weights.VersionFacts;
import dev.millrace.weights.VersionFacts.Progress;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.junit.jupiter.api.Test;

class TrainingStateTest {
    private final TrainingState state = new TrainingState(
            Weights.zeros(SyntheticRollouts.SHAPE),
            new AdamW(new AdamW.Config(0.9, 0.999, 1e-8, 0), SyntheticRollouts.SHAPE),
            manifest());

    @Test
    void shouldCountOnFromTheNewestVersion() {
        try (SyntheticRollouts rollouts = new SyntheticRollouts(1)) {
            Trajectory first = rollouts.next();
            Trajectory second = rollouts.next();
            LearnerBatch batch = SyntheticRollouts.batch(
                    3, List.of(SyntheticRollouts.entry(first, 0, 0), SyntheticRollouts.masked(second, 0, 1)));

            VersionFacts next = state.next(
                    new IncomingBatch(
                            batch,
                            new TopicPartition("batches", 0),
                            new OffsetAndMetadata(1),
                            new BatchProgress(3, 102),
                            List.of()),
                    new StepReport(
                            0.1,
                            List.of(new StepEntry(5, null)),
                            new StepFigures(5, Optional.empty(), 1, 1, 0, 0),
                            List.of(),
                            new ControlState(Map.of("a", 2.0)),
                            StepMetrics.NONE,
                            Optional.empty()),
                    77);

            assertThat(next)
                    .isEqualTo(
                            new VersionFacts(4, 3, "vocabulary", new Progress(102, 1005), 77, Map.of("a", 2.0), null));
        }
    }

    @Test
    void shouldRefuseABatchThatWasAssembledAgainstAVersionNotMadeYet() {
        LearnerBatch known = SyntheticRollouts.batch(3, List.of());
        known.put(known.getSchema().getField("assembled_version").pos(), 3L);
        assertThatCode(() -> state.requireKnown(known)).doesNotThrowAnyException();

        LearnerBatch unknown = SyntheticRollouts.batch(3, List.of());
        unknown.put(unknown.getSchema().getField("assembled_version").pos(), 4L);
        assertThatThrownBy(() -> state.requireKnown(unknown))
                .isInstanceOf(InconsistentBatchException.class)
                .hasMessage(
                        "batch 3 was assembled against version 4, but the newest this learner knows is 3: versions were lost,"
                                + " or another learner makes them");
    }

    private static PolicyVersion manifest() {
        return PolicyVersion.newBuilder()
                .setRunId("run-1")
                .setEpoch(0)
                .setPolicyId("policy")
                .setVersion(3)
                .setParentVersion(2)
                .setBatchId(2)
                .setShape("{}")
                .setTokenizerHash("vocabulary")
                .setWeights(TensorLocation.newBuilder()
                        .setTopic("weights")
                        .setPartition(0)
                        .setFirstOffset(0)
                        .setLastOffset(0)
                        .setTensors(List.of())
                        .setSha256("")
                        .build())
                .setOptimizerSteps(3)
                .setRolloutsConsumed(100)
                .setTokensTrained(1000)
                .setPublishedAtMs(0)
                .build();
    }
}
