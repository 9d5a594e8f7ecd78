package dev.millrace.learner.step;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.corrections.algorithm.NamedAlgorithms;
import dev.millrace.corrections.algorithm.RoutingReplay;
import dev.millrace.corrections.stage.ControlState;
import dev.millrace.learner.SyntheticRollouts;
import dev.millrace.learner.batch.TrainingBatch;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.DecoderTraits;
import dev.millrace.policy.decoder.Experts;
import dev.millrace.policy.decoder.RopeScaling;
import dev.millrace.policy.decoder.TensorSpec;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.session.RoutedExperts;
import dev.millrace.policy.session.ScoringSession;
import dev.millrace.policy.session.SequenceBatch;
import dev.millrace.policy.weights.Weights;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.RecordedRouting;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.packed.PackedMask;
import dev.millrace.schemas.registry.InMemorySchemaRegistry;
import dev.millrace.schemas.serde.AvroSerde;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** Through which experts tokens go in a step: the router's, the generator's, or those of the step's start. */
class RoutingReplayStepTest {
    private static final DecoderShape SHAPE = new DecoderShape(
                    SyntheticRollouts.SHAPE.vocabSize(), 8, 2, 2, 1, 4, 8, 24, 100, 1e-6, false, false)
            .with(new DecoderTraits(new RopeScaling.None(), false, false, true, 0, 0, new Experts(5, 2, 6, true)));

    private final Weights weights = Weights.random(SHAPE, 1);
    private final Weights others = Weights.random(SHAPE, 2);

    @BeforeAll
    static void trustRecords() {
        AvroSerde.of(Trajectory.class, new InMemorySchemaRegistry());
    }

    @Test
    void shouldScoreThroughTheExpertsThatTheGeneratorRecorded() {
        try (ScoringSession session = new ScoringSession(Engine.cpu(), SHAPE, 1024);
                GradientShards shards = new GradientShards(
                        Engine.cpu(),
                        SHAPE,
                        Optional.empty(),
                        StepConfig.defaults().withCut(64, 2),
                        2)) {
            StepMembers plain = new StepMembers(batch(new RoutedExperts[6]));
            RoutedExperts[] routing =
                    session.scoreRouted(others, plain.sequences(), ones()).routing();
            routing[2] = null;
            StepMembers members = new StepMembers(batch(routing));
            float[] expected = session.score(weights, plain.sequences().routed(routing), ones())
                    .logProbs();
            float[] found = new float[expected.length];
            shards.score(weights, members, IntStream.range(0, 6).toArray(), found, null, new StepMetricsTally());
            assertThat(found).containsExactly(expected, within(1e-6f));
            assertThat(session.score(weights, plain.sequences(), ones()).logProbs())
                    .isNotEqualTo(expected);
        }
    }

    @Test
    void shouldGoThroughTheExpertsOfTheStepsStartInItsLaterUpdates() {
        try (ScoringSession session = new ScoringSession(Engine.cpu(), SHAPE, 1024);
                GradientShards shards = new GradientShards(
                        Engine.cpu(),
                        SHAPE,
                        Optional.empty(),
                        StepConfig.defaults().withCut(64, 2),
                        2)) {
            StepMembers members = new StepMembers(batch(new RoutedExperts[6]));
            SequenceBatch before = members.sequences();
            int[] some = {0, 2, 3, 5};
            members.replay(shards.route(weights, members, some, new StepMetricsTally()));
            RoutedExperts[] ofStart =
                    session.scoreRouted(weights, before, ones()).routing();
            for (int s = 0; s < 6; s++) {
                if (s == 1 || s == 4) {
                    assertThat(members.sequences().routing(s)).isNull();
                    ofStart[s] = null;
                } else {
                    assertThat(members.sequences().routing(s).ids()).isEqualTo(ofStart[s].ids());
                }
            }
            float[] found = new float[before.scoredCount()];
            shards.score(others, members, IntStream.range(0, 6).toArray(), found, null, new StepMetricsTally());
            assertThat(found)
                    .containsExactly(
                            session.score(others, before.routed(ofStart), ones())
                                    .logProbs(),
                            within(1e-6f));
        }
    }

    @Test
    void shouldLearnOtherwiseWhereRoutersWouldHaveChosenOthersAfterTheFirstUpdate() {
        Weights own = trained(RoutingReplay.NONE);
        assertThat(apart(own, trained(RoutingReplay.NONE))).isZero();
        assertThat(apart(own, trained(RoutingReplay.LEARNER))).isGreaterThan(1e-4);
    }

    private static double apart(Weights one, Weights other) {
        double most = 0;
        for (TensorSpec spec : SHAPE.tensors()) {
            for (int i = 0; i < spec.elementCount(); i++) {
                most = Math.max(
                        most,
                        Math.abs(one.tensor(spec.name()).get(i)
                                - other.tensor(spec.name()).get(i)));
            }
        }
        return most;
    }

    private Weights trained(RoutingReplay replay) {
        Algorithm algorithm =
                NamedAlgorithms.of("ppo").with(a -> a.minibatches(2).epochs(2).routingReplay(replay));
        Weights trained = weights.copy();
        StepConfig config = StepConfig.defaults()
                .withOptimizer(new OptimizerConfig(0.1, 0, new DecayConfig.Constant(), 0.9, 0.999, 1e-8, 0, 1));
        try (BatchOptimizer optimizer = new BatchOptimizer(Engine.cpu(), SHAPE, config, algorithm)) {
            optimizer.train(batch(new RoutedExperts[6]), 0, ControlState.initial(), trained, optimizer.newOptimizer());
        }
        return trained;
    }

    @Test
    void shouldRefuseToReplayWhatIsNotThere() {
        Algorithm replaying = NamedAlgorithms.of("ppo").with(a -> a.routingReplay(RoutingReplay.LEARNER));
        assertThatIllegalArgumentException()
                .isThrownBy(() ->
                        new BatchOptimizer(Engine.cpu(), SyntheticRollouts.SHAPE, StepConfig.defaults(), replaying))
                .withMessageContaining("algorithm.routing_replay is learner, and the model has no experts");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> replaying.with(a -> a.minibatches(1)))
                .withMessageContaining("with minibatches=1 and epochs=1 there is one update");
    }

    private static float[] ones() {
        float[] ones = new float[6];
        Arrays.fill(ones, 1f);
        return ones;
    }

    private static TrainingBatch batch(RoutedExperts[] routing) {
        List<Trajectory> trajectories = new ArrayList<>();
        List<BatchEntry> entries = new ArrayList<>();
        try (SyntheticRollouts rollouts = new SyntheticRollouts(2)) {
            for (int i = 0; i < 6; i++) {
                Trajectory trajectory = rollouts.next();
                RoutedExperts of = routing[i];
                if (of != null) {
                    trajectory = Trajectory.newBuilder(trajectory)
                            .setRouting(new RecordedRouting(
                                    of.layers(), of.perToken(), PackedMask.of(of.ids()), PackedFloats.of(of.weights())))
                            .build();
                }
                trajectories.add(trajectory);
                entries.add(SyntheticRollouts.entry(trajectory, 0, i));
            }
        }
        return TrainingBatch.of(SyntheticRollouts.batch(1, entries), trajectories);
    }
}
