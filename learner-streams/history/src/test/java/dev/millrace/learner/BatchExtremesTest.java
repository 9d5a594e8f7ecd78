package dev.millrace.learner;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.corrections.algorithm.Mode;
import dev.millrace.corrections.stage.ControlState;
import dev.millrace.learner.batch.InconsistentBatchException;
import dev.millrace.learner.batch.TrainingBatch;
import dev.millrace.learner.step.BatchOptimizer;
import dev.millrace.learner.step.StepConfig;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.weights.Weights;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.schemas.registry.InMemorySchemaRegistry;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.topology.Extremes;
import dev.millrace.topology.Extremes.Extreme;
import dev.millrace.weights.VersionHash;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Every numeric field of a batch and of a trajectory that it points at, with every extreme of its type: a step is made of it, or the batch is refused. */
class BatchExtremesTest {
    private static final int MEMBERS = 4;

    /** Loads the serde, which marks the record classes as trusted for copies. */
    @BeforeAll
    static void trustRecords() {
        AvroSerde.of(Trajectory.class, new InMemorySchemaRegistry());
    }

    @ParameterizedTest
    @EnumSource(
            value = Mode.class,
            names = {"DECOUPLED", "RECORDED"})
    void shouldTrainOnTheBatchOrRefuseIt(Mode mode) {
        List<Trajectory> trajectories = new ArrayList<>();
        List<BatchEntry> entries = new ArrayList<>();
        try (SyntheticRollouts rollouts = new SyntheticRollouts(2)) {
            for (int i = 0; i < MEMBERS; i++) {
                trajectories.add(rollouts.next());
                entries.add(SyntheticRollouts.entry(trajectories.get(i), 0, i));
            }
        }
        LearnerBatch batch = SyntheticRollouts.batch(1, entries);
        Map<String, String> failed = new TreeMap<>();
        try (BatchOptimizer learner = new BatchOptimizer(
                Engine.cpu(),
                SyntheticRollouts.SHAPE,
                StepConfig.defaults().withCut(64, 1),
                Algorithm.defaults().with(a -> a.mode(mode)))) {
            for (Extreme<LearnerBatch> extreme : Extremes.of(batch)) {
                tryOut(learner, extreme.toString(), extreme.record(), trajectories, failed);
            }
            for (Extreme<Trajectory> extreme : Extremes.of(trajectories.get(0))) {
                List<Trajectory> changed = new ArrayList<>(trajectories);
                changed.set(0, extreme.record());
                tryOut(learner, extreme.toString(), batch, changed, failed);
            }
            for (int token :
                    new int[] {-1, SyntheticRollouts.SHAPE.vocabSize(), Integer.MAX_VALUE, Integer.MIN_VALUE}) {
                int[] tokens = PackedInts.toArray(trajectories.get(0).getResponseTokens());
                tokens[0] = token;
                List<Trajectory> changed = new ArrayList<>(trajectories);
                changed.set(
                        0,
                        Trajectory.newBuilder(trajectories.get(0))
                                .setResponseTokens(PackedInts.of(tokens))
                                .build());
                tryOut(learner, "response_tokens[0]=" + token, batch, changed, failed);
            }
        }
        // a step that makes a weight infinite ends the learner, and publishes nothing
        failed.values().removeIf(why -> why.contains("the step made model.embed_tokens.weight -Infinity"));
        assertThat(failed).isEmpty();
    }

    private static void tryOut(
            BatchOptimizer learner,
            String what,
            LearnerBatch batch,
            List<Trajectory> trajectories,
            Map<String, String> failed) {
        Weights weights = Weights.random(SyntheticRollouts.SHAPE, SyntheticRollouts.SEED);
        String before = VersionHash.of(weights);
        try {
            learner.train(
                    TrainingBatch.of(batch, trajectories), 0, ControlState.initial(), weights, learner.newOptimizer());
        } catch (InconsistentBatchException e) {
            assertThat(VersionHash.of(weights)).isEqualTo(before);
        } catch (RuntimeException e) {
            failed.put(what, e.toString());
        }
    }
}
