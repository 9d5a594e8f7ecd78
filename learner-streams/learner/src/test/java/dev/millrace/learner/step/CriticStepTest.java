package dev.millrace.learner.step;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.advantage.AdvantagesAndReturns;
import dev.millrace.corrections.advantage.Credit;
import dev.millrace.corrections.advantage.Gae;
import dev.millrace.corrections.advantage.Grpo;
import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.corrections.algorithm.CriticConfig;
import dev.millrace.corrections.algorithm.EntropyConfig;
import dev.millrace.corrections.algorithm.EntropyConfig.Rule;
import dev.millrace.corrections.algorithm.NamedAlgorithms;
import dev.millrace.corrections.objective.LossAggregation;
import dev.millrace.corrections.stage.ControlState;
import dev.millrace.learner.SyntheticRollouts;
import dev.millrace.learner.batch.TrainingBatch;
import dev.millrace.policy.autodiff.AdamW;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.LoraShape;
import dev.millrace.policy.decoder.TensorSpec;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.session.GradientPass;
import dev.millrace.policy.session.GradientSession;
import dev.millrace.policy.session.ScoringSession;
import dev.millrace.policy.session.TokenScores;
import dev.millrace.policy.weights.Gradients;
import dev.millrace.policy.weights.Weights;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.packed.PackedFloats;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/**
 * A step with a critic, compared with plain loops. The rollouts were scored as version 0; steps start from other
 * weights, as version 3 unless a test says otherwise.
 */
class CriticStepTest {
    private static final DecoderShape SHAPE = SyntheticRollouts.SHAPE.withValueHead(true);
    private static final long VERSION = 3;
    private static final double COEFFICIENT = 0.5;
    private static final Gae GAE = new Gae(1, 0.9, Credit.OUTCOME);
    private static final Algorithm CRITIC = NamedAlgorithms.of("none")
            .with(a -> a.advantage(GAE)
                    .critic(new CriticConfig.ValueHead(COEFFICIENT, 0))
                    .lossAggMode(new LossAggregation.TokenMean())
                    .entropy(new EntropyConfig(0, Rule.CONSTANT)));
    private static final StepConfig STEP = StepConfig.defaults()
            .withOptimizer(new OptimizerConfig(1e-2, 0, new DecayConfig.Constant(), 0.9, 0.999, 1e-8, 0, 0));

    private final SyntheticRollouts rollouts = new SyntheticRollouts(7);
    private final ScoringSession scoring = new ScoringSession(Engine.cpu(), SHAPE, 1024);
    private final List<AutoCloseable> opened = new ArrayList<>(List.of(rollouts, scoring));
    private final List<Trajectory> trajectories =
            Stream.generate(rollouts::next).limit(12).toList();
    private final TrainingBatch batch = batch();
    private final StepMembers members = new StepMembers(batch);

    @AfterEach
    void closeSessions() throws Exception {
        for (AutoCloseable session : opened) {
            session.close();
        }
    }

    @Test
    void shouldAddTheLossOfValuesUnderTheStepsOwnWeights() {
        TokenScores scores = scores(weights());
        AdvantagesAndReturns expected = GAE.compute(members.own(), rewards(), scores.values());
        Map<String, Double> metrics = open(CRITIC)
                .train(
                        batch,
                        VERSION,
                        ControlState.initial(),
                        weights(),
                        new AdamW(STEP.optimizer().adamW(), SHAPE))
                .metrics()
                .byName();

        double loss = 0;
        double policyLoss = 0;
        double meanReturn = 0;
        double meanMissed = 0;
        int tokens = members.own().trainedTokens();
        for (int t = 0; t < members.own().tokenCount(); t++) {
            if (members.own().isTrained(t)) {
                double missed = (double) expected.returns()[t] - scores.values()[t];
                loss += missed * missed / 2 / tokens;
                policyLoss -= (double) expected.advantages()[t] * scores.logProbs()[t] / tokens;
                meanReturn += (double) expected.returns()[t] / tokens;
                meanMissed += missed / tokens;
            }
        }
        double variance = 0;
        double unexplained = 0;
        for (int t = 0; t < members.own().tokenCount(); t++) {
            if (members.own().isTrained(t)) {
                double missed = (double) expected.returns()[t] - scores.values()[t];
                variance += Math.pow(expected.returns()[t] - meanReturn, 2);
                unexplained += Math.pow(missed - meanMissed, 2);
            }
        }
        assertThat(metrics.get("value_loss")).isCloseTo(loss, within(1e-5)).isGreaterThan(0.01);
        assertThat(metrics.get("policy_loss")).isCloseTo(policyLoss, within(1e-5));
        assertThat(metrics.get("loss")).isCloseTo(policyLoss + COEFFICIENT * loss, within(1e-5));
        assertThat(metrics.get("explained_variance")).isCloseTo(1 - unexplained / variance, within(1e-5));
        assertThat(metrics).doesNotContainKey("value_clip_fraction");
    }

    @Test
    void shouldDifferentiateBothLossesInOnePass() {
        TokenScores scores = scores(weights());
        TokenBatch layout = members.own();
        AdvantagesAndReturns expected = GAE.compute(layout, rewards(), scores.values());
        float[] ofLogProbs = new float[layout.tokenCount()];
        float[] ofValues = new float[layout.tokenCount()];
        for (int t = 0; t < ofValues.length; t++) {
            if (layout.isTrained(t)) {
                ofLogProbs[t] = -expected.advantages()[t] / layout.trainedTokens();
                ofValues[t] = (float) (COEFFICIENT * ((double) scores.values()[t] - expected.returns()[t]))
                        / layout.trainedTokens();
            }
        }
        Gradients twin = new Gradients(SHAPE);
        try (GradientSession session = new GradientSession(Engine.cpu(), SHAPE, 1024)) {
            session.accumulate(
                    weights(),
                    new GradientPass.Part(
                            members.sequences(), ones(), ofLogProbs, new float[ofValues.length], ofValues),
                    twin);
        }

        BatchGradient found = open(CRITIC).gradient(batch, VERSION, ControlState.initial(), weights(), 0);

        assertThat(norm(twin, "value_head.weight")).isGreaterThan(0.01);
        assertThat(norm(twin, "value_head.bias")).isGreaterThan(0.01);
        Gradients difference = found.sum();
        difference.scale(-1);
        difference.add(twin);
        assertThat(difference.l2Norm()).isLessThan(1e-5 * twin.l2Norm());
        assertThat(found.sequenceNorms()).hasSize(trajectories.size()).doesNotContain(0);
    }

    @Test
    void shouldTakeTheRecordedValuesOfTheVersionThatItStartsFrom() {
        float[] recorded = new float[members.own().tokenCount()];
        for (int t = 0; t < recorded.length; t++) {
            recorded[t] = 0.125f * (t % 5);
        }
        int at = 0;
        for (Trajectory trajectory : trajectories) {
            int tokens = trajectory.getMask().remaining();
            trajectory.put("proximal_values", PackedFloats.of(Arrays.copyOfRange(recorded, at, at + tokens)));
            at += tokens;
        }
        Map<String, Double> metrics = open(CRITIC)
                .train(
                        batch,
                        0,
                        ControlState.initial(),
                        weights(),
                        new AdamW(STEP.optimizer().adamW(), SHAPE))
                .metrics()
                .byName();

        assertThat(metrics.get("value_loss")).isCloseTo(loss(recorded, recorded), within(1e-5));
        assertThat(metrics.get("forward_passes")).as("none was needed").isNull();
    }

    @Test
    void shouldBoundValuesAroundThoseOfTheStepsStartInItsLaterUpdates() {
        Algorithm several =
                CRITIC.with(a -> a.objective(NamedAlgorithms.of("ppo").objective())
                        .minibatches(2)
                        .epochs(3));
        Algorithm clipped = several.with(a -> a.critic(new CriticConfig.ValueHead(COEFFICIENT, 0.01)));
        Weights free = weights();
        open(several)
                .train(
                        batch,
                        VERSION,
                        ControlState.initial(),
                        free,
                        new AdamW(STEP.optimizer().adamW(), SHAPE));
        Weights bounded = weights();
        StepReport report = open(clipped)
                .train(
                        batch,
                        VERSION,
                        ControlState.initial(),
                        bounded,
                        new AdamW(STEP.optimizer().adamW(), SHAPE));

        assertThat(report.metrics().byName().get("value_clip_fraction")).isBetween(0.05, 0.95);
        assertThat(distance(scores(bounded).values(), scores(weights()).values()))
                .isLessThan(distance(scores(free).values(), scores(weights()).values()));
    }

    @Test
    void shouldComeToExplainTheReturnsOfABatch() {
        Algorithm outcomes = CRITIC.with(a -> a.advantage(Gae.defaults()));
        BatchOptimizer learner = open(outcomes);
        AdamW adamW = new AdamW(STEP.optimizer().adamW(), SHAPE);
        Weights weights = Weights.random(SHAPE, 99);
        List<Double> explained = new ArrayList<>();
        for (int step = 0; step < 150; step++) {
            explained.add(learner.train(batch, VERSION, ControlState.initial(), weights, adamW)
                    .metrics()
                    .byName()
                    .get("explained_variance"));
        }
        assertThat(explained.get(0)).as("a head of zeros explains nothing").isZero();
        assertThat(explained.get(149)).isGreaterThan(0.2);
    }

    @Test
    void shouldMakeTheSameStepWhereASequenceGoesAlone() {
        Weights together = weights();
        Weights alone = weights();
        open(CRITIC)
                .train(
                        batch,
                        VERSION,
                        ControlState.initial(),
                        together,
                        new AdamW(STEP.optimizer().adamW(), SHAPE));
        BatchOptimizer cut = new BatchOptimizer(Engine.cpu(), SHAPE, STEP.withCut(1, 3), CRITIC);
        opened.add(cut);
        cut.train(
                batch,
                VERSION,
                ControlState.initial(),
                alone,
                new AdamW(STEP.optimizer().adamW(), SHAPE));
        for (TensorSpec spec : SHAPE.tensors()) {
            for (int i = 0; i < spec.elementCount(); i++) {
                assertThat(alone.tensor(spec.name()).get(i))
                        .as(spec.name())
                        .isCloseTo(together.tensor(spec.name()).get(i), within(2e-3f));
            }
        }
    }

    @Test
    void shouldLeaveTheHeadAloneWhereAnotherAdvantageIsTried() {
        Algorithm other = CRITIC.with(a -> a.critic(new CriticConfig.Off()).advantage(Grpo.defaults()));
        Weights weights = weights();
        StepReport report = open(other)
                .train(
                        batch,
                        VERSION,
                        ControlState.initial(),
                        weights,
                        new AdamW(STEP.optimizer().adamW(), SHAPE));
        assertThat(report.metrics().byName()).doesNotContainKeys("value_loss", "explained_variance");
        assertThat(weights.bytes("value_head.weight")).isEqualTo(weights().bytes("value_head.weight"));
        assertThat(weights.bytes("model.norm.weight")).isNotEqualTo(weights().bytes("model.norm.weight"));
    }

    @Test
    void shouldRefuseAPolicyWithoutAHeadAndAdapters() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> new BatchOptimizer(Engine.cpu(), SyntheticRollouts.SHAPE, STEP, CRITIC))
                .withMessageStartingWith("algorithm.critic is value_head, and the policy has no value head");
        LoraStart lora = new LoraStart(new LoraShape(1, 1, List.of("q_proj")), 1);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> new BatchOptimizer(Engine.cpu(), SHAPE, Optional.of(lora), STEP, CRITIC))
                .withMessageStartingWith("adapters are trained, and algorithm.critic is value_head");
    }

    private double loss(float[] values, float[] old) {
        AdvantagesAndReturns expected = GAE.compute(members.own(), rewards(), old);
        double loss = 0;
        for (int t = 0; t < values.length; t++) {
            if (members.own().isTrained(t)) {
                loss += Math.pow((double) expected.returns()[t] - values[t], 2)
                        / 2
                        / members.own().trainedTokens();
            }
        }
        return loss;
    }

    private static double distance(float[] a, float[] b) {
        double sum = 0;
        for (int t = 0; t < a.length; t++) {
            sum += Math.pow(a[t] - b[t], 2);
        }
        return sum;
    }

    private static double norm(Gradients gradients, String tensor) {
        double sum = 0;
        for (float value : gradients.values(tensor)) {
            sum += value * value;
        }
        return Math.sqrt(sum);
    }

    /** The reward of a sequence at its last trained token. */
    private float[] rewards() {
        TokenBatch layout = members.own();
        float[] rewards = new float[layout.tokenCount()];
        for (int s = 0; s < layout.sequenceCount(); s++) {
            int last = layout.end(s) - 1;
            while (!layout.isTrained(last)) {
                last--;
            }
            rewards[last] = (float) members.rewards()[s];
        }
        return rewards;
    }

    private TokenScores scores(Weights weights) {
        return scoring.score(weights, members.sequences(), ones());
    }

    private float[] ones() {
        float[] ones = new float[trajectories.size()];
        Arrays.fill(ones, 1f);
        return ones;
    }

    private BatchOptimizer open(Algorithm algorithm) {
        BatchOptimizer learner = new BatchOptimizer(Engine.cpu(), SHAPE, STEP, algorithm);
        opened.add(learner);
        return learner;
    }

    /** With a non-zero head. */
    private static Weights weights() {
        Weights weights = Weights.random(SHAPE, 99);
        for (int i = 0; i < SHAPE.hiddenSize(); i++) {
            weights.tensor("value_head.weight").put(i, 0.1f * (i % 3 - 1));
        }
        weights.tensor("value_head.bias").put(0, 0.25f);
        return weights;
    }

    private TrainingBatch batch() {
        List<BatchEntry> entries = new ArrayList<>();
        for (int s = 0; s < trajectories.size(); s++) {
            entries.add(SyntheticRollouts.entry(trajectories.get(s), 0, s));
        }
        return TrainingBatch.of(SyntheticRollouts.batch(3, entries), trajectories);
    }
}
