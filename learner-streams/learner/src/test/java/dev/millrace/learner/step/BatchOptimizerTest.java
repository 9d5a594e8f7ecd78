package dev.millrace.learner.step;

import static java.util.stream.Collectors.groupingBy;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.advantage.Grpo;
import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.corrections.algorithm.EntropyConfig;
import dev.millrace.corrections.algorithm.EntropyConfig.Rule;
import dev.millrace.corrections.algorithm.Mode;
import dev.millrace.corrections.objective.Anchor;
import dev.millrace.corrections.objective.DecoupledPpo;
import dev.millrace.corrections.objective.LossAggregation;
import dev.millrace.corrections.objective.Objective;
import dev.millrace.corrections.objective.PpoClip;
import dev.millrace.corrections.objective.Quatro;
import dev.millrace.corrections.objective.QueryMultipliers;
import dev.millrace.corrections.objective.R2vpo;
import dev.millrace.corrections.objective.Reinforce;
import dev.millrace.corrections.stage.AdvantageEstimator;
import dev.millrace.corrections.stage.ControlState;
import dev.millrace.corrections.stage.StageBatch;
import dev.millrace.corrections.stage.StageOutcome;
import dev.millrace.corrections.vcpo.Opob;
import dev.millrace.corrections.weights.None;
import dev.millrace.corrections.weights.Token;
import dev.millrace.learner.SyntheticRollouts;
import dev.millrace.learner.batch.TrainingBatch;
import dev.millrace.learner.batch.TrainingBatch.Member;
import dev.millrace.policy.autodiff.AdamW;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.LoraShape;
import dev.millrace.policy.decoder.TensorSpec;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.session.GradientSession;
import dev.millrace.policy.session.ScoringSession;
import dev.millrace.policy.session.SequenceBatch;
import dev.millrace.policy.session.TokenScores;
import dev.millrace.policy.weights.Dtype;
import dev.millrace.policy.weights.Gradients;
import dev.millrace.policy.weights.Weights;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.Credit;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.StepEntry;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.schemas.packed.PackedMask;
import dev.millrace.schemas.registry.InMemorySchemaRegistry;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.weights.VersionHash;
import java.io.ByteArrayOutputStream;
import java.nio.FloatBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CancellationException;
import java.util.function.DoubleUnaryOperator;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

class BatchOptimizerTest {
    private static final DecoderShape SHAPE = SyntheticRollouts.SHAPE;
    private static final double BONUS = 0.03;

    /** The batch's own decisions stand. */
    private static final Algorithm RECORDED =
            Algorithm.defaults().with(a -> a.mode(Mode.RECORDED).entropy(new EntropyConfig(BONUS, Rule.REWARD_GAP)));

    private final SyntheticRollouts rollouts = new SyntheticRollouts(2);
    private final List<AutoCloseable> opened = new ArrayList<>(List.of(rollouts));

    /** Loads the serde, which marks the record classes as trusted for copying builders. */
    @BeforeAll
    static void trustRecords() {
        AvroSerde.of(Trajectory.class, new InMemorySchemaRegistry());
    }

    @AfterEach
    void closeSessions() throws Exception {
        for (AutoCloseable session : opened) {
            session.close();
        }
    }

    /** Coefficients written out: −w A / N for log-probs and −β / N for entropies, N trained tokens, 0 at context tokens. */
    @Test
    void shouldStepAlongTheGradientOfTheWeightedAdvantages() {
        TrainingBatch batch = batch(6);
        Weights weights = initial();
        Gradients expected = new Gradients(SHAPE);
        double beta = BONUS * (1 - batch.meanReward());
        double loss = 0;
        double entropy = 0;
        double kl = 0;
        double k2 = 0;
        try (GradientSession session = new GradientSession(Engine.cpu(), SHAPE, 64)) {
            for (Member member : batch.trained()) {
                Trajectory trajectory = member.trajectory();
                int length = PackedInts.length(trajectory.getResponseTokens());
                float[] c = new float[length];
                float[] e = new float[length];
                for (int t = 0; t < length; t++) {
                    double trained = PackedMask.get(member.mask(), t) / (double) batch.trainedTokens();
                    double weight = Math.min(
                            2,
                            Math.exp((double) PackedFloats.get(trajectory.getProximalLogProbs(), t)
                                    - PackedFloats.get(trajectory.getBehaviorLogProbs(), t)));
                    c[t] = (float) (-trained * weight * member.entry().getAdvantage());
                    e[t] = (float) (-trained * beta);
                }
                TokenScores scores =
                        session.accumulate(weights, sequence(trajectory), new float[] {1f}, c, e, expected);
                for (int t = 0; t < length; t++) {
                    double trained = PackedMask.get(member.mask(), t) / (double) batch.trainedTokens();
                    loss += c[t] * scores.logProbs()[t] + e[t] * scores.entropies()[t];
                    entropy += trained * scores.entropies()[t];
                    double apart = PackedFloats.get(trajectory.getBehaviorLogProbs(), t) - scores.logProbs()[t];
                    kl += trained * apart;
                    k2 += trained * apart * apart / 2;
                }
            }
        }
        double norm = expected.l2Norm();
        double bound = norm / 3;
        expected.scale((float) (bound / norm));
        BatchOptimizer learner = optimizer(new Reinforce(), 1, 1, 2, bound);
        AdamW twin = learner.newOptimizer();
        Weights stepped = weights.copy();
        twin.step(stepped, expected, 1e-2 * 0.8); // the batch's step scale

        AdamW adamW = learner.newOptimizer();
        StepReport report = learner.train(batch, 0, ControlState.initial(), weights, adamW);

        assertThat(report.metrics().updates()).isEqualTo(1);
        assertThat(report.learningRate()).isCloseTo(0.8e-2, within(1e-15));
        assertThat(report.metrics().byName().get("loss")).isCloseTo(loss, within(1e-6));
        assertThat(report.metrics().byName().get("entropy")).isCloseTo(entropy, within(1e-5));
        assertThat(report.metrics().byName().get("entropy_coefficient")).isCloseTo(beta, within(1e-12));
        assertThat(report.metrics().byName().get("approx_kl_behavior")).isCloseTo(kl, within(1e-6));
        assertThat(report.metrics().byName().get("approx_kl2_behavior")).isCloseTo(k2, within(1e-6));
        assertThat(report.metrics().byName().get("grad_norm")).isCloseTo(norm, within(1e-5 * norm));
        assertThat(report.metrics().byName().get("grad_clipped")).isEqualTo(1);
        // m = (1 - b1) g is linear in the gradient; the weights after a first step are not
        for (TensorSpec spec : SHAPE.tensors()) {
            float[] m = floats(adamW.state().first().tensor(spec.name()));
            float[] expectedM = floats(twin.state().first().tensor(spec.name()));
            for (int i = 0; i < m.length; i++) {
                assertThat(m[i]).as("%s[%d]", spec.name(), i).isCloseTo(expectedM[i], within((float) (1e-5 * bound)));
            }
        }
    }

    @Test
    void shouldTakeTheWeightsThatEntriesRecordInThePlaceOfItsOwn() {
        TrainingBatch batch = batch(6);
        byte[] made = trained(batch, new Reinforce(), 1, 1, 2);
        assertThat(trained(withWeights(batch, t -> Math.min(2, t)), new Reinforce(), 1, 1, 2))
                .isEqualTo(made);
        assertThat(trained(withWeights(batch, t -> 2 * Math.min(2, t)), new Reinforce(), 1, 1, 2))
                .isNotEqualTo(made);
    }

    /** Records weights that are a function of each token's ratio. */
    private static TrainingBatch withWeights(TrainingBatch batch, DoubleUnaryOperator rule) {
        List<BatchEntry> entries = new ArrayList<>();
        for (Member member : batch.members()) {
            Trajectory trajectory = member.trajectory();
            float[] weights = new float[PackedMask.length(trajectory.getMask())];
            for (int t = 0; t < weights.length; t++) {
                double ratio = Math.exp((double) PackedFloats.get(trajectory.getProximalLogProbs(), t)
                        - PackedFloats.get(trajectory.getBehaviorLogProbs(), t));
                weights[t] = PackedMask.get(trajectory.getMask(), t) * (float) rule.applyAsDouble(ratio);
            }
            entries.add(BatchEntry.newBuilder(member.entry())
                    .setWeights(PackedFloats.of(weights))
                    .build());
        }
        return TrainingBatch.of(
                LearnerBatch.newBuilder(batch.batch()).setEntries(entries).build(),
                batch.members().stream().map(Member::trajectory).toList());
    }

    @Test
    void shouldGiveTheSameBitsForTheSameBatchWhateverTheThreadsDo() {
        TrainingBatch batch = batch(9);
        byte[] first = trained(batch, new Reinforce(), 1, 1, 3);
        for (int repeat = 0; repeat < 5; repeat++) {
            assertThat(trained(batch, new Reinforce(), 1, 1, 3)).isEqualTo(first);
        }
        assertThat(trained(batch, DecoupledPpo.defaults(), 3, 2, 2))
                .isEqualTo(trained(batch, DecoupledPpo.defaults(), 3, 2, 2));
    }

    static List<AdvantageEstimator> baselines() {
        return List.of(Grpo.defaults(), Opob.defaults());
    }

    @ParameterizedTest
    @MethodSource("baselines")
    void shouldGiveTheSameBitsWithAnyNumberOfThreads(AdvantageEstimator baseline) {
        TrainingBatch batch = batch(12);
        List<byte[]> weights = new ArrayList<>();
        for (int threads = 1; threads <= 5; threads++) {
            BatchOptimizer learner = new BatchOptimizer(
                    Engine.cpu(),
                    SHAPE,
                    Optional.empty(),
                    StepConfig.defaults().withCut(64, 4),
                    Algorithm.defaults().with(a -> a.advantage(baseline)),
                    threads);
            opened.add(learner);
            Weights own = initial();
            AdamW adamW = learner.newOptimizer();
            learner.train(batch, 1, ControlState.initial(), own, adamW);
            learner.train(batch, 2, ControlState.initial(), own, adamW);
            weights.add(bytes(own));
        }
        assertThat(weights).allSatisfy(bytes -> assertThat(bytes).isEqualTo(weights.get(0)));
        assertThat(weights.get(0)).isNotEqualTo(bytes(initial()));
    }

    /**
     * Scores of a rounded version equal the learner's at its next step: old and proximal have the same bits at
     * staleness 0, for any batch split.
     */
    @Test
    void shouldBeginAStepWithTheBitsThatAScorerFindsUnderARoundedVersion() {
        TrainingBatch batch = batch(12);
        Weights trained = initial().as(Dtype.BF16);
        BatchOptimizer learner = open(RECORDED, StepConfig.defaults().withCut(64, 3));
        AdamW adamW = learner.newOptimizer();
        learner.train(batch, 1, ControlState.initial(), trained, adamW);
        learner.train(batch, 2, ControlState.initial(), trained, adamW);
        assertThat(bytes(trained)).isNotEqualTo(bytes(initial().as(Dtype.BF16)));

        Weights published = Weights.zeros(SHAPE, Dtype.BF16); // as on the log
        SHAPE.tensors().forEach(spec -> published.load(spec.name(), trained.bytes(spec.name())));
        List<Float> old = new ArrayList<>();
        for (int budget : new int[] {16, 4096}) {
            old.clear();
            try (ScoringSession scorer = new ScoringSession(Engine.cpu(), SHAPE, budget)) {
                for (Member member : batch.members()) {
                    Trajectory trajectory = member.trajectory();
                    TokenScores scores = scorer.score(
                            published, sequence(trajectory), new float[] {(float) trajectory.getTemperature()});
                    for (float logProb : scores.logProbs()) {
                        old.add(logProb);
                    }
                }
            }
            float[] proximal = learner.logProbs(batch, trained);
            assertThat(old).as("micro-batches of %d tokens", budget).hasSize(proximal.length);
            for (int t = 0; t < proximal.length; t++) {
                assertThat(Float.floatToRawIntBits(old.get(t)))
                        .as("token %d of %d: %s and %s", t, proximal.length, old.get(t), proximal[t])
                        .isEqualTo(Float.floatToRawIntBits(proximal[t]));
            }
        }
    }

    /** m = (1 − b1) g after a first step, so the first moments show the gradient, element by element. */
    @Test
    void shouldAddUpTheSameGradientFromAnyNumberOfShardsAndMicrobatches() {
        TrainingBatch batch = batch(12);
        AdamW.State whole = firstStep(batch, 1, 4096);
        double largest = 0;
        for (TensorSpec spec : SHAPE.tensors()) {
            for (float m : floats(whole.first().tensor(spec.name()))) {
                largest = Math.max(largest, Math.abs(m));
            }
        }
        for (int shards = 1; shards <= 14; shards += 3) {
            for (int budget : new int[] {1, 8, 20, 64}) {
                AdamW.State parts = firstStep(batch, shards, budget);
                for (TensorSpec spec : SHAPE.tensors()) {
                    assertThat(floats(parts.first().tensor(spec.name())))
                            .as("%s of %d shards and micro-batches of %d tokens", spec.name(), shards, budget)
                            .containsExactly(
                                    floats(whole.first().tensor(spec.name())), within((float) (1e-5 * largest)));
                }
            }
        }
    }

    @Test
    void shouldTakeAStepPerMinibatchAndEpoch() {
        BatchOptimizer learner = optimizer(PpoClip.defaults(), 3, 2, 1, 0);
        AdamW adamW = learner.newOptimizer();

        StepReport report = learner.train(batch(7), 0, ControlState.initial(), initial(), adamW);

        assertThat(report.metrics().updates()).isEqualTo(6);
        assertThat(adamW.state().steps()).isEqualTo(6);
        assertThat(report.metrics().byName())
                .containsKeys("clip_fraction", "clip_fraction_lower", "approx_kl_proximal", "seconds_forward");
    }

    @Test
    void shouldClipOnlyOnceThePolicyHasMovedAwayFromItsAnchor() {
        BatchOptimizer once = optimizer(DecoupledPpo.defaults(), 1, 1, 1, 0);
        StepReport first = once.train(batch(8), 0, ControlState.initial(), initial(), once.newOptimizer());
        assertThat(first.metrics().byName().get("clip_fraction")).isZero();
        assertThat(first.metrics().byName().get("approx_kl_proximal")).isCloseTo(0, within(1e-6));

        BatchOptimizer often = optimizer(DecoupledPpo.defaults(), 1, 30, 1, 0);
        StepReport later = often.train(batch(8), 0, ControlState.initial(), initial(), often.newOptimizer());
        assertThat(later.metrics().byName().get("clip_fraction")).isPositive();
    }

    @Test
    void shouldRememberTheMultiplierByWhichRatiosAreHeld() {
        R2vpo kind = new R2vpo(Anchor.PROXIMAL, 2, 0.01, 5, 0.1, 10);
        BatchOptimizer learner = optimizer(kind, 1, 1, 1, 0);
        Weights weights = initial();
        AdamW adamW = learner.newOptimizer();

        StepReport first = learner.train(batch(7), 0, ControlState.initial(), weights, adamW);
        StepReport second = learner.train(batch(7), 1, first.controls(), weights, adamW);

        double after = Math.max(0.1, 2 + 5 * (first.metrics().byName().get("ratio_variance") - 0.01));
        assertThat(first.controls().get("objective.r2vpo.multiplier")).hasValueCloseTo(after, within(1e-12));
        assertThat(second.controls().get("objective.r2vpo.multiplier"))
                .hasValueCloseTo(
                        Math.max(0.1, after + 5 * (second.metrics().byName().get("ratio_variance") - 0.01)),
                        within(1e-12));
    }

    @Test
    void shouldSolveForATrustRegionOfEveryGroup() {
        TrainingBatch batch = batch(7);
        BatchOptimizer learner = optimizer(Quatro.defaults(), 1, 1, 2, 0);

        StepReport report = learner.train(batch, 0, ControlState.initial(), initial(), learner.newOptimizer());

        double[] multipliers =
                batch.trained().stream()
                        .collect(groupingBy(member -> member.entry().getGroupId()))
                        .values()
                        .stream()
                        .mapToDouble(group -> new QueryMultipliers(0.05, 0.1)
                                .solve(group.stream()
                                        .mapToDouble(
                                                member -> (float) member.entry().getAdvantage())
                                        .toArray())
                                .multiplier())
                        .toArray();
        assertThat(multipliers).hasSizeLessThan(batch.trained().size());
        assertThat(report.metrics().byName().get("quatro_multiplier"))
                .isCloseTo(Arrays.stream(multipliers).average().orElseThrow(), within(1e-9));
    }

    @Test
    void shouldMakeRewardedTokensLikelier() {
        BatchOptimizer learner = optimizer(new Reinforce(), 1, 1, 2, 0);
        Weights weights = initial();
        AdamW adamW = learner.newOptimizer();
        TrainingBatch batch = batch(16);
        double before = learner.train(batch, 0, ControlState.initial(), weights, adamW)
                .metrics()
                .byName()
                .get("policy_loss");
        double after = before;
        for (int i = 0; i < 10; i++) {
            after = learner.train(batch, 0, ControlState.initial(), weights, adamW)
                    .metrics()
                    .byName()
                    .get("policy_loss");
        }
        assertThat(after).isLessThan(before - 0.01);
    }

    @Test
    void shouldChangeNothingForABatchWithoutTrainedTokens() {
        Trajectory trajectory = rollouts.next();
        TrainingBatch masked = TrainingBatch.of(
                SyntheticRollouts.batch(0, List.of(SyntheticRollouts.masked(trajectory, 0, 0))), List.of(trajectory));
        TrainingBatch empty = TrainingBatch.of(SyntheticRollouts.batch(1, List.of()), List.of());
        BatchOptimizer learner = optimizer(new Reinforce(), 1, 1, 2, 0);
        AdamW adamW = learner.newOptimizer();
        Weights weights = initial();

        for (TrainingBatch batch : List.of(masked, empty)) {
            StepReport report = learner.train(batch, 0, ControlState.initial(), weights, adamW);
            assertThat(report.metrics().updates()).isZero();
            assertThat(report.learningRate()).isZero();
        }
        assertThat(bytes(weights)).isEqualTo(bytes(initial()));
        assertThat(adamW.state().steps()).isZero();
    }

    @Test
    void shouldTrainOnNothingOfABatchAboutWhichAStageCannotDecide() {
        AdvantageEstimator failing = new AdvantageEstimator() {
            @Override
            public CorrectionUnit unit() {
                return CorrectionUnit.SEQUENCE;
            }

            @Override
            public String name() {
                return "failing";
            }

            @Override
            public StageOutcome apply(StageBatch batch) {
                throw new IllegalStateException("not today");
            }
        };
        BatchOptimizer learner = open(Algorithm.defaults().with(a -> a.advantage(failing)), StepConfig.defaults());
        Weights weights = initial();
        AdamW adamW = learner.newOptimizer();

        StepReport report = learner.train(batch(4), 0, ControlState.initial(), weights, adamW);

        assertThat(report.isStarved()).isTrue();
        assertThat(report.failure())
                .contains("stage failing cannot decide about the batch: IllegalStateException: not today");
        assertThat(report.entries()).containsOnly(new StepEntry(0, "failing"));
        assertThat(bytes(weights)).isEqualTo(bytes(initial()));
        assertThat(adamW.state().steps()).isZero();
    }

    @Test
    void shouldStopAtAnAdvantageThatMakesTheGradientInfinite() {
        BatchOptimizer learner = unclipped(new LossAggregation.TokenSum());

        assertThatThrownBy(() -> learner.train(
                        withAdvantages(batch(4), 3e38), 0, ControlState.initial(), initial(), learner.newOptimizer()))
                .isInstanceOf(NonFiniteStepException.class)
                .hasMessageMatching(
                        "batch 4: the gradient of [a-z_.0-9]+ is (NaN|-?Infinity) at element \\d+; nothing was"
                                + " published\\. Lower learning_rate or max_grad_norm.*");
    }

    @Test
    void shouldStopAtAGradientWhoseSquareIsInfinite() {
        BatchOptimizer learner = unclipped(new LossAggregation.TokenMean());

        assertThatThrownBy(() -> learner.train(
                        withAdvantages(batch(4), 1e30), 0, ControlState.initial(), initial(), learner.newOptimizer()))
                .isInstanceOf(NonFiniteStepException.class)
                .hasMessageMatching("batch 4: the step made the second moment of \\S+ Infinity at element \\d+; .*");
    }

    @Test
    void shouldNameTheRolloutAtWhichTheWeightsGiveNoNumber() {
        Weights weights = initial();
        weights.tensor("model.norm.weight").put(0, Float.NaN);
        BatchOptimizer learner = optimizer(new Reinforce(), 1, 1, 1, 0);

        assertThatThrownBy(() -> learner.train(batch(4), 0, ControlState.initial(), weights, learner.newOptimizer()))
                .isInstanceOf(NonFiniteStepException.class)
                .hasMessageMatching("batch 4: rollout g[01]/[01]: sequence \\d, token \\d: logProb=NaN, .*");
    }

    @Test
    void shouldStopAtALearningRateThatBlowsUpTheWeights() {
        OptimizerConfig huge = new OptimizerConfig(1e38, 0, new DecayConfig.Constant(), 0.9, 0.999, 1e-12, 1, 0);
        BatchOptimizer learner =
                open(RECORDED, StepConfig.defaults().withOptimizer(huge).withCut(256, 1));

        assertThatThrownBy(() -> learner.train(batch(4), 0, ControlState.initial(), initial(), learner.newOptimizer()))
                .isInstanceOf(NonFiniteStepException.class)
                .hasMessageMatching("batch 4: the step made \\S+ (NaN|-?Infinity) at element .*");
    }

    @Test
    void shouldGiveUpWhenItIsCancelled() {
        BatchOptimizer learner = optimizer(new Reinforce(), 1, 1, 2, 0);
        learner.cancel();

        assertThatThrownBy(() -> learner.train(batch(4), 0, ControlState.initial(), initial(), learner.newOptimizer()))
                .isInstanceOf(CancellationException.class);
    }

    private AdamW.State firstStep(TrainingBatch batch, int shards, int tokensPerMicrobatch) {
        BatchOptimizer learner = open(RECORDED, StepConfig.defaults().withCut(tokensPerMicrobatch, shards));
        AdamW adamW = learner.newOptimizer();
        learner.train(batch, 0, ControlState.initial(), initial(), adamW);
        return adamW.state();
    }

    private byte[] trained(TrainingBatch batch, Objective kind, int minibatches, int epochs, int shards) {
        BatchOptimizer learner = optimizer(kind, minibatches, epochs, shards, 0.5);
        Weights weights = initial();
        AdamW adamW = learner.newOptimizer();
        learner.train(batch, 0, ControlState.initial(), weights, adamW);
        learner.train(batch, 0, ControlState.initial(), weights, adamW);
        return bytes(weights);
    }

    /** Where the batch decided an advantage for each token, the gradient is of these: −w A_t / N. */
    @Test
    void shouldTrainWithTheAdvantagesOfTokensThatTheBatchDecided() {
        TrainingBatch plain = batch(6);
        List<BatchEntry> entries = new ArrayList<>();
        for (Member member : plain.members()) {
            float[] perToken = new float[PackedMask.length(member.mask())];
            for (int t = 0; t < perToken.length; t++) {
                perToken[t] = 0.5f - t;
            }
            entries.add(BatchEntry.newBuilder(member.entry())
                    .setCredit(Credit.newBuilder()
                            .setTokenLevelAdvantages(PackedFloats.of(perToken))
                            .build())
                    .build());
        }
        TrainingBatch batch = TrainingBatch.of(
                SyntheticRollouts.batch(2, entries),
                plain.members().stream().map(Member::trajectory).toList());
        Weights weights = initial();
        Gradients expected = new Gradients(SHAPE);
        try (GradientSession session = new GradientSession(Engine.cpu(), SHAPE, 64)) {
            for (Member member : batch.trained()) {
                Trajectory trajectory = member.trajectory();
                float[] c = new float[PackedMask.length(member.mask())];
                for (int t = 0; t < c.length; t++) {
                    double weight = Math.min(
                            2,
                            Math.exp((double) PackedFloats.get(trajectory.getProximalLogProbs(), t)
                                    - PackedFloats.get(trajectory.getBehaviorLogProbs(), t)));
                    c[t] = (float) (-PackedMask.get(member.mask(), t) * weight * (0.5 - t) / batch.trainedTokens());
                }
                session.accumulate(weights, sequence(trajectory), new float[] {1f}, c, new float[c.length], expected);
            }
        }
        BatchOptimizer learner = open(
                RECORDED.with(a -> a.entropy(new EntropyConfig(0, Rule.CONSTANT))),
                StepConfig.defaults().withCut(64, 2));
        Gradients found =
                learner.gradient(batch, 0, ControlState.initial(), weights, 0).sum();
        double norm = expected.l2Norm();
        assertThat(norm).isGreaterThan(1e-3);
        found.scale(-1);
        found.add(expected);
        assertThat(found.l2Norm()).isLessThan(1e-5 * norm);
    }

    @Test
    void shouldTrainAnAdapterAloneAndByTheSameBitsWithAnyNumberOfThreads() {
        TrainingBatch batch = batch(12);
        LoraStart lora = new LoraStart(new LoraShape(2, 4, LoraShape.MODULES), 5);
        List<String> hashes = new ArrayList<>();
        for (int threads = 1; threads <= 3; threads++) {
            BatchOptimizer learner = new BatchOptimizer(
                    Engine.cpu(),
                    SHAPE,
                    Optional.of(lora),
                    StepConfig.defaults().withCut(64, 3),
                    Algorithm.defaults(),
                    threads);
            opened.add(learner);
            Weights own = learner.trainable(initial().as(Dtype.BF16));
            AdamW adamW = learner.newOptimizer();
            learner.train(batch, 1, ControlState.initial(), own, adamW);
            learner.train(batch, 2, ControlState.initial(), own, adamW);
            hashes.add(VersionHash.of(own));

            assertThat(own.trained().specs()).isEqualTo(lora.shape().tensors(SHAPE));
            assertThat(adamW.state().first().specs()).isEqualTo(lora.shape().tensors(SHAPE));
            Weights base = initial().as(Dtype.BF16);
            List<String> adapted =
                    lora.shape().adapted(SHAPE).stream().map(TensorSpec::name).toList();
            for (TensorSpec spec : SHAPE.tensors()) {
                assertThat(own.tensor(spec.name()).equals(base.tensor(spec.name())))
                        .as(spec.name())
                        .isEqualTo(!adapted.contains(spec.name()));
            }
        }
        assertThat(hashes).allMatch(hashes.get(0)::equals);
    }

    @Test
    void shouldRefuseToTrainAnotherAdapterThanTheWeightsHave() {
        BatchOptimizer plain = open(Algorithm.defaults(), StepConfig.defaults());
        LoraStart lora = new LoraStart(new LoraShape(2, 4, LoraShape.MODULES), 5);
        BatchOptimizer adapting =
                new BatchOptimizer(Engine.cpu(), SHAPE, Optional.of(lora), StepConfig.defaults(), Algorithm.defaults());
        opened.add(adapting);
        Weights adapted = adapting.trainable(initial());

        assertThat(adapting.trainable(adapted)).isSameAs(adapted);
        assertThatThrownBy(() -> plain.trainable(adapted))
                .hasMessageStartingWith("the weights have an adapter of LoraShape[rank=2")
                .hasMessageEndingWith("and the weights themselves are trained");
        assertThatThrownBy(() -> new BatchOptimizer(
                        Engine.cpu(),
                        SHAPE,
                        Optional.of(lora),
                        StepConfig.defaults(),
                        Algorithm.defaults().with(a -> a.advantage(Opob.defaults()))))
                .hasMessageStartingWith("adapters are trained and the advantage is opob");
    }

    private BatchOptimizer optimizer(Objective kind, int minibatches, int epochs, int shards, double maxGradNorm) {
        return open(
                RECORDED.with(a -> a.objective(kind)
                        .weights(kind.weightsCompare().isPresent() ? Token.defaults() : new None())
                        .minibatches(minibatches)
                        .epochs(epochs)),
                StepConfig.defaults()
                        .withCut(64, shards)
                        .withOptimizer(new OptimizerConfig(
                                1e-2, 0, new DecayConfig.Constant(), 0.9, 0.999, 1e-8, 0, maxGradNorm)));
    }

    private static Weights initial() {
        return Weights.random(SHAPE, SyntheticRollouts.SEED);
    }

    private BatchOptimizer open(Algorithm algorithm, StepConfig config) {
        BatchOptimizer learner = new BatchOptimizer(Engine.cpu(), SHAPE, config, algorithm);
        opened.add(learner);
        return learner;
    }

    /** Batch number {@code size} mod 3 has the step scale 1 − 0.1 (size mod 3); the third member is fully masked. */
    private TrainingBatch batch(int size) {
        List<Trajectory> trajectories = new ArrayList<>();
        List<BatchEntry> entries = new ArrayList<>();
        for (int i = 0; i < size; i++) {
            Trajectory trajectory = rollouts.next();
            trajectories.add(trajectory);
            entries.add(
                    i == 2 ? SyntheticRollouts.masked(trajectory, 0, i) : SyntheticRollouts.entry(trajectory, 0, i));
        }
        long id = size == 6 ? 2 : size;
        LearnerBatch batch = SyntheticRollouts.batch(id, entries);
        return TrainingBatch.of(batch, trajectories);
    }

    private static TrainingBatch withAdvantages(TrainingBatch batch, double advantage) {
        for (BatchEntry entry : batch.batch().getEntries()) {
            entry.put(entry.getSchema().getField("advantage").pos(), advantage);
        }
        return batch;
    }

    private BatchOptimizer unclipped(LossAggregation aggregation) {
        return open(
                RECORDED.with(a -> a.lossAggMode(aggregation).entropy(new EntropyConfig(0, Rule.CONSTANT))),
                StepConfig.defaults()
                        .withCut(64, 1)
                        .withOptimizer(
                                new OptimizerConfig(1e-2, 0, new DecayConfig.Constant(), 0.9, 0.999, 1e-8, 0, 0)));
    }

    private static SequenceBatch sequence(Trajectory trajectory) {
        int[] prompt = PackedInts.toArray(trajectory.getPromptTokens());
        int[] response = PackedInts.toArray(trajectory.getResponseTokens());
        int[] tokens = new int[prompt.length + response.length];
        System.arraycopy(prompt, 0, tokens, 0, prompt.length);
        System.arraycopy(response, 0, tokens, prompt.length, response.length);
        return new SequenceBatch(new int[][] {tokens}, new int[] {prompt.length});
    }

    private static float[] floats(FloatBuffer buffer) {
        float[] values = new float[buffer.remaining()];
        buffer.get(values);
        return values;
    }

    private static byte[] bytes(Weights weights) {
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        for (TensorSpec spec : SHAPE.tensors()) {
            byte[] bytes = new byte[weights.bytes(spec.name()).remaining()];
            weights.bytes(spec.name()).get(bytes);
            all.writeBytes(bytes);
        }
        return all.toByteArray();
    }
}
