package dev.millrace.learner.step;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.api.catalogue.Catalogue;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.advantage.EmaBaseline;
import dev.millrace.corrections.advantage.Grpo;
import dev.millrace.corrections.advantage.SoftMaximum;
import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.corrections.algorithm.EntropyConfig;
import dev.millrace.corrections.algorithm.EntropyConfig.Rule;
import dev.millrace.corrections.algorithm.Mode;
import dev.millrace.corrections.kl.CoefficientConfig;
import dev.millrace.corrections.kl.KlConfig;
import dev.millrace.corrections.kl.KlDivergence;
import dev.millrace.corrections.kl.KlWeighting;
import dev.millrace.corrections.kl.ReferenceConfig;
import dev.millrace.corrections.m2po.M2po;
import dev.millrace.corrections.objective.DecoupledPpo;
import dev.millrace.corrections.objective.GlobalBatch;
import dev.millrace.corrections.objective.LossAggregation;
import dev.millrace.corrections.objective.M2poSurrogate;
import dev.millrace.corrections.objective.Oapl;
import dev.millrace.corrections.objective.Objective;
import dev.millrace.corrections.objective.ObjectiveInput;
import dev.millrace.corrections.objective.ObjectiveResult;
import dev.millrace.corrections.objective.Reinforce;
import dev.millrace.corrections.objective.UpdateFacts;
import dev.millrace.corrections.ratio.MissingOldLogProbs;
import dev.millrace.corrections.stage.ControlState;
import dev.millrace.corrections.stage.Decision;
import dev.millrace.corrections.stage.LengthGuardConfig;
import dev.millrace.corrections.stage.MaskStage;
import dev.millrace.corrections.stage.StageBatch;
import dev.millrace.corrections.stage.StageFacts;
import dev.millrace.corrections.stage.StageInput;
import dev.millrace.corrections.staleness.StepStaleness;
import dev.millrace.corrections.trm.SampledTrustRegionMask;
import dev.millrace.corrections.vcpo.EffectiveSampleSize;
import dev.millrace.corrections.vcpo.Opob;
import dev.millrace.corrections.weights.None;
import dev.millrace.corrections.weights.Token;
import dev.millrace.learner.SyntheticRollouts;
import dev.millrace.learner.batch.InconsistentBatchException;
import dev.millrace.learner.batch.TrainingBatch;
import dev.millrace.policy.autodiff.AdamW;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.session.GradientSession;
import dev.millrace.policy.session.ScoringSession;
import dev.millrace.policy.session.SequenceBatch;
import dev.millrace.policy.weights.Dtype;
import dev.millrace.policy.weights.Gradients;
import dev.millrace.policy.weights.Weights;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.RecordedBaseline;
import dev.millrace.schemas.StageReport;
import dev.millrace.schemas.StepEntry;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.schemas.packed.PackedMask;
import dev.millrace.stages.StageReports;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.IntFunction;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * What a step starts from, held against a twin that scores each sequence alone and does the arithmetic in plain loops. The
 * rollouts were scored by the initial weights, as version 0; the steps start from other weights, as version 3.
 */
class StepStartTest {
    private static final DecoderShape SHAPE = SyntheticRollouts.SHAPE;
    private static final long VERSION = 3;
    private static final Algorithm PLAIN =
            Algorithm.defaults().with(a -> a.masks().entropy(new EntropyConfig(0, Rule.CONSTANT)));
    private static final StepConfig STEP = StepConfig.defaults()
            .withOptimizer(new OptimizerConfig(1e-2, 0, new DecayConfig.Constant(), 0.9, 0.999, 1e-8, 0, 0));

    private final SyntheticRollouts rollouts = new SyntheticRollouts(7);
    private final ScoringSession scoring = new ScoringSession(Engine.cpu(), SHAPE, 1024);
    private final List<AutoCloseable> opened = new ArrayList<>(List.of(rollouts, scoring));
    private final List<Trajectory> trajectories =
            Stream.generate(rollouts::next).limit(8).toList();
    private final TrainingBatch batch = batch();

    @AfterEach
    void closeSessions() throws Exception {
        for (AutoCloseable session : opened) {
            session.close();
        }
    }

    @Test
    void shouldWeighTokensByWhatTheStepsOwnWeightsSayOfThem() {
        StepReport report = train(PLAIN);

        double loss = 0;
        double[] logWeights = new double[8];
        for (int s = 0; s < 8; s++) {
            float[] current = scores(s);
            for (int t = 0; t < current.length; t++) {
                if (mask(s, t) == 1) {
                    double logRatio = (double) current[t] - behavior(s)[t];
                    logWeights[s] += logRatio;
                    loss -= Math.min(2, Math.exp(logRatio)) * advantage(s) * current[t] / trainedTokens();
                }
            }
        }
        EffectiveSampleSize ess = EffectiveSampleSize.ofRaw(logWeights);
        assertThat(report.metrics().byName().get("policy_loss")).isCloseTo(loss, within(1e-5));
        assertThat(report.figures().essRatio())
                .isCloseTo(ess.ratio(), within(1e-5))
                .isLessThan(0.99);
        assertThat(report.metrics().byName().get("step_scale")).isCloseTo(Math.sqrt(ess.ratio()), within(1e-5));
        assertThat(report.learningRate()).isCloseTo(1e-2 * Math.sqrt(ess.ratio()), within(1e-7));
        assertThat(report.metrics().byName())
                .containsEntry("recorded.ess_ratio", 0.9)
                .containsEntry("recorded.step_scale", 1.0)
                .containsEntry("recorded.second_moment", 0.01)
                .containsEntry("proximal.sequences_recomputed", 8.0)
                .containsEntry("forward_passes", 1.0);
        assertThat(report.figures().staleness())
                .as("sampled and scored by version 0")
                .contains(new StepStaleness(trainedTokens(), 3, 3, 0, 3, new TreeMap<>(Map.of(3L, trainedTokens()))));
        assertThat(report.figures().tokensTrainable()).isEqualTo(trainedTokens());
        assertThat(report.stages())
                .extracting(StageReport::getStage)
                .containsExactly("staleness", "token_tis", "grpo", "rollout_correction", "second_moment", "ess");
        assertThat(report.tokensTrained()).isEqualTo(trainedTokens());
        assertThat(report.entries()).hasSize(8).allMatch(entry -> entry.getMaskedBy() == null);
    }

    @Test
    void shouldCompareRewardsWithTheBaselinesThatTheBatchRecorded() {
        List<BatchEntry> entries = new ArrayList<>();
        for (int s = 0; s < 8; s++) {
            entries.add(BatchEntry.newBuilder(SyntheticRollouts.entry(trajectories.get(s), 0, s))
                    .setBaseline(new RecordedBaseline("p" + s, s / 10.0))
                    .build());
        }
        BatchOptimizer learner = open(PLAIN.with(a -> a.advantage(new EmaBaseline(0.5, EmaBaseline.Key.PROMPT))));
        StepReport report = learner.train(
                TrainingBatch.of(SyntheticRollouts.batch(3, entries), trajectories),
                VERSION,
                ControlState.initial(),
                moved(),
                learner.newOptimizer());

        double loss = 0;
        for (int s = 0; s < 8; s++) {
            float[] current = scores(s);
            for (int t = 0; t < current.length; t++) {
                if (mask(s, t) == 1) {
                    double weight = Math.min(2, Math.exp((double) current[t] - behavior(s)[t]));
                    double advantage = trajectories.get(s).getReward() - s / 10.0;
                    loss -= weight * advantage * current[t] / trainedTokens();
                }
            }
        }
        assertThat(report.metrics().byName().get("policy_loss")).isCloseTo(loss, within(1e-5));
        assertThat(value(report, "ema_baseline", "mean_baseline")).isCloseTo(0.35, within(1e-12));
    }

    @Test
    void shouldDivideByEverythingThatReachedATrustRegionMask() {
        double[] largest = new double[8];
        for (int s = 0; s < 8; s++) {
            float[] current = scores(s);
            for (int t = 0; t < current.length; t++) {
                largest[s] = Math.max(largest[s], mask(s, t) * Math.abs((double) current[t] - behavior(s)[t]));
            }
        }
        double bound = Arrays.stream(largest).sorted().skip(4).findFirst().orElseThrow() - 1e-4;
        double loss = 0;
        for (int s = 0; s < 8; s++) {
            float[] current = scores(s);
            for (int t = 0; largest[s] <= bound && t < current.length; t++) {
                loss -= mask(s, t) * advantage(s) * current[t];
            }
        }
        Algorithm masked = PLAIN.with(
                a -> a.weights(new None()).masks((MaskStage) SampledTrustRegionMask.byLargestLogRatio(bound)));

        StepReport byTokens = train(masked);
        assertThat(byTokens.entries())
                .filteredOn(entry -> entry.getMaskedBy() != null)
                .hasSize(4);
        assertThat(byTokens.metrics().byName().get("policy_loss")).isCloseTo(loss / trainedTokens(), within(1e-5));
        assertThat(train(masked.with(a -> a.lossAggMode(new LossAggregation.SeqMeanTokenSum())))
                        .metrics()
                        .byName()
                        .get("policy_loss"))
                .isCloseTo(loss / 8, within(1e-5));
    }

    @Test
    void shouldGiveEachMinibatchItsShareOfWhatATrustRegionMaskTook() {
        TokenBatch seven = new TokenBatch(
                new int[] {0, 2, 4, 6, 8, 10, 12, 14}, new byte[] {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1});
        float[] behavior = new float[14];
        float[] proximal = new float[14];
        proximal[0] = -3;
        Decision decided = StageBatch.decide(
                StageFacts.of(seven, new double[7])
                        .vector(StageInput.BEHAVIOR, behavior)
                        .vector(StageInput.PROXIMAL, proximal)
                        .build(),
                List.of(SampledTrustRegionMask.defaults()));
        StepDecision decision = new StepDecision(decided, behavior, proximal, StageReports.of(decided.outcomes()));

        assertThat(decision.whole(new TokenBatch(new int[] {0, 2, 4}, new byte[] {1, 1, 1, 1})))
                .as("one of three minibatches of the six sequences that are left of seven")
                .isEqualTo(new GlobalBatch(14 / 3.0, 7 / 3.0, 1));
    }

    @Test
    void shouldScoreNothingThatWasScoredUnderTheVeryVersionOfTheStep() {
        BatchOptimizer learner = open(PLAIN);
        StepReport report = learner.train(
                batch,
                0,
                ControlState.initial(),
                Weights.random(SHAPE, SyntheticRollouts.SEED),
                learner.newOptimizer());

        assertThat(report.metrics().byName())
                .containsEntry("proximal.sequences_recomputed", 0.0)
                .doesNotContainKey("forward_passes");
        assertThat(report.figures().staleness().orElseThrow().max()).isZero();
        assertThat(report.figures().essRatio())
                .as("the noise on the behavior log-probs")
                .isBetween(0.99, 1.0);
    }

    @Test
    void shouldNotPayTwiceWhereTheUpdateNeedsTheSameLogProbs() {
        StepReport once = train(PLAIN.with(a -> a.objective(DecoupledPpo.defaults())));
        assertThat(once.metrics().byName()).containsEntry("forward_passes", 1.0).containsEntry("clip_fraction", 0.0);
        assertThat(Math.abs(once.metrics().byName().get("approx_kl_proximal"))).isZero();

        StepReport twice =
                train(PLAIN.with(a -> a.objective(DecoupledPpo.defaults()).epochs(2)));
        assertThat(twice.metrics().byName())
                .as("the second epoch's weights are new ones")
                .containsEntry("forward_passes", 2.0);
    }

    @Test
    void shouldMaskByTheSecondMomentOfTheStepsOwnRatios() {
        StepReport report = train(PLAIN.with(a -> a.masks(new M2po(1e-4, false))));

        StageReport m2po = report.stages().stream()
                .filter(stage -> stage.getStage().equals("m2po"))
                .findFirst()
                .orElseThrow();
        assertThat(m2po.getTokensChanged()).isPositive();
        assertThat(report.tokensTrained()).isEqualTo(trainedTokens() - m2po.getTokensChanged());
        assertThat(report.entries())
                .extracting(StepEntry::getTrainedTokens)
                .satisfies(tokens -> assertThat(
                                tokens.stream().mapToLong(Integer::longValue).sum())
                        .isEqualTo(report.tokensTrained()));
        assertThat(report.entries().stream().filter(entry -> entry.getTrainedTokens() == 0))
                .allMatch(entry -> entry.getMaskedBy().equals("m2po"));
        double moment = 0;
        for (int s = 0; s < 8; s++) {
            for (int t = 0; t < scores(s).length; t++) {
                moment += mask(s, t) * Math.pow((double) scores(s)[t] - behavior(s)[t], 2) / trainedTokens();
            }
        }
        assertThat(report.figures().secondMoment()).isCloseTo(moment, within(1e-5));
    }

    /** A-3PO: three versions behind, two thirds of the way from behavior to current. */
    @Test
    void shouldPutTheInterpolatedPolicyBetweenBehaviorAndCurrent() {
        StepReport report = train(PLAIN.with(a -> a.mode(Mode.INTERPOLATED).objective(new DecoupledPpo(10, 10, 100))));

        double kl = 0;
        double loss = 0;
        for (int s = 0; s < 8; s++) {
            float[] current = scores(s);
            for (int t = 0; t < current.length; t++) {
                double proximal = behavior(s)[t] + 2.0 / 3 * (current[t] - behavior(s)[t]);
                double weight = Math.min(2, Math.exp(proximal - behavior(s)[t]));
                kl += mask(s, t) * (proximal - current[t]) / trainedTokens();
                loss -= mask(s, t) * weight * advantage(s) * Math.exp(current[t] - proximal) / trainedTokens();
            }
        }
        assertThat(report.metrics().byName().get("approx_kl_proximal")).isCloseTo(kl, within(1e-5));
        assertThat(report.metrics().byName().get("policy_loss")).isCloseTo(loss, within(1e-5));
    }

    /**
     * The members 2 and 5 lack old log-probs: three versions behind, two thirds of the way from behavior to current is their
     * proximal policy, and the others' is the current one.
     */
    @Test
    void shouldInterpolateForTheMembersWithoutOldLogProbs() {
        TrainingBatch lacking = without(2, 5);
        BatchOptimizer learner = open(with(MissingOldLogProbs.INTERPOLATE));
        StepReport report = learner.train(lacking, VERSION, ControlState.initial(), moved(), learner.newOptimizer());

        double loss = 0;
        double moment = 0;
        for (int s = 0; s < 8; s++) {
            float[] current = scores(s);
            for (int t = 0; t < current.length; t++) {
                double logWeight = (s == 2 || s == 5 ? 2.0 / 3 : 1.0) * ((double) current[t] - behavior(s)[t]);
                loss -= mask(s, t) * Math.min(2, Math.exp(logWeight)) * advantage(s) * current[t] / trainedTokens();
                moment += mask(s, t) * logWeight * logWeight / trainedTokens();
            }
        }
        assertThat(report.metrics().byName().get("policy_loss")).isCloseTo(loss, within(1e-5));
        assertThat(report.figures().secondMoment()).isCloseTo(moment, within(1e-5));
        assertThat(report.metrics().byName())
                .containsEntry("proximal.sequences_interpolated", 2.0)
                .containsEntry("proximal.sequences_recomputed", 8.0);
        assertThat(report.tokensTrained()).isEqualTo(trainedTokens());
    }

    /** The siblings of the members 2 and 5 keep their advantages. */
    @Test
    void shouldTrainOnNoTokenOfAMaskedMemberWithoutOldLogProbs() {
        TrainingBatch lacking = without(2, 5);
        BatchOptimizer learner = open(with(MissingOldLogProbs.MASK));
        StepReport report = learner.train(lacking, VERSION, ControlState.initial(), moved(), learner.newOptimizer());

        double loss = 0;
        long left = trainedTokens()
                - PackedMask.count(trajectories.get(2).getMask())
                - PackedMask.count(trajectories.get(5).getMask());
        for (int s = 0; s < 8; s++) {
            if (s != 2 && s != 5) {
                float[] current = scores(s);
                for (int t = 0; t < current.length; t++) {
                    double logWeight = (double) current[t] - behavior(s)[t];
                    loss -= mask(s, t) * Math.min(2, Math.exp(logWeight)) * advantage(s) * current[t] / left;
                }
            }
        }
        assertThat(report.tokensTrained()).isEqualTo(left);
        assertThat(report.entries())
                .extracting(StepEntry::getMaskedBy)
                .containsExactly(null, null, "missing_old_log_probs", null, null, "missing_old_log_probs", null, null);
        assertThat(report.metrics().byName().get("policy_loss")).isCloseTo(loss, within(1e-5));
        assertThat(report.metrics().byName()).doesNotContainKey("proximal.sequences_interpolated");
    }

    /** A run that earlier continued without old log-probs, but no longer does. */
    @Test
    void shouldTrainOnNothingWithoutOldLogProbsUnlessItIsToldTo() {
        BatchOptimizer learner = open(with(MissingOldLogProbs.RECOMPUTE));
        StepReport report = learner.train(without(0), VERSION, ControlState.initial(), moved(), learner.newOptimizer());
        assertThat(report.entries().get(0).getMaskedBy()).isEqualTo("missing_old_log_probs");
    }

    private TrainingBatch without(int... members) {
        for (int s : members) {
            trajectories.get(s).put(Trajectory.SCHEMA$.getField("old_log_probs").pos(), null);
        }
        return batch();
    }

    private static Algorithm with(MissingOldLogProbs policy) {
        return PLAIN.with(a -> a.missingOldLogProbs(policy));
    }

    @Test
    void shouldMeasureNothingThatNeedsAComparisonInBypass() {
        StepReport report = train(Algorithm.variant("bypass_ppo_clip").with(a -> a.entropy(PLAIN.entropy())));

        assertThat(report.figures().essRatio()).isNaN();
        assertThat(report.figures().secondMoment()).isNaN();
        assertThat(report.metrics().byName()).containsEntry("step_scale", 1.0).containsEntry("forward_passes", 1.0);
    }

    static Stream<Objective> everyObjective() {
        List<Objective> all = Catalogue.current().kinds(Objective.class).stream()
                .map(kind -> (Objective) kind.defaults())
                .toList();
        assertThat(all).hasSizeGreaterThanOrEqualTo(20);
        return all.stream();
    }

    /** The objective as the corrections have it, on vectors packed by hand, against what the optimizer made of it. */
    @ParameterizedTest
    @MethodSource("everyObjective")
    void shouldGiveEveryObjectiveItsVectors(Objective kind) {
        StepReport report = train(PLAIN.with(a -> a.mode(Mode.RECORDED)
                .objective(kind)
                .advantage(kind instanceof Oapl oapl ? new SoftMaximum(oapl.beta()) : Grpo.defaults())
                .weights(kind.weightsCompare().isPresent() ? Token.defaults() : new None())
                .masks(kind instanceof M2poSurrogate ? new MaskStage[] {new M2po(1e9, false)} : new MaskStage[0])));

        int[] offsets = new int[9];
        for (int s = 0; s < 8; s++) {
            offsets[s + 1] = offsets[s] + behavior(s).length;
        }
        List<String> groups =
                trajectories.stream().map(Trajectory::getGroupId).distinct().toList();
        TokenBatch layout = new TokenBatch(
                offsets,
                bytes(s -> PackedMask.toArray(trajectories.get(s).getMask()), offsets),
                trajectories.stream()
                        .mapToInt(trajectory -> groups.indexOf(trajectory.getGroupId()))
                        .toArray());
        float[] advantages = new float[offsets[8]];
        for (int s = 0; s < 8; s++) {
            double advantage = advantage(s);
            Arrays.fill(advantages, offsets[s], offsets[s + 1], (float) advantage);
        }
        float[] old = floats(s -> PackedFloats.toArray(trajectories.get(s).getOldLogProbs()), offsets);
        float[] behavior = floats(this::behavior, offsets);
        ObjectiveInput input = ObjectiveInput.of(layout, floats(this::scores, offsets), advantages)
                .withBehavior(behavior)
                .withProximal(
                        switch (kind.anchor()) {
                            case PROXIMAL, OLD -> old; // scored under the version that sampled
                            case BEHAVIOR -> behavior;
                        });
        if (kind.weightsCompare().isPresent()) {
            input = input.withWeights(floats(this::oldWeights, offsets));
        }
        ObjectiveResult expected = kind.evaluate(
                input, UpdateFacts.of(kind.publishedAggregation(), new GlobalBatch(trainedTokens(), 8, 1)));
        assertThat(report.metrics().byName().get("policy_loss")).isCloseTo(expected.loss(), within(2e-5));
        assertThat(report.metrics().byName().get("grad_norm")).isPositive().isFinite();
        expected.metrics().forEach((name, value) -> {
            String metric = name.equals(ObjectiveResult.APPROX_KL) ? "approx_kl_proximal" : name;
            if (report.metrics().byName().containsKey(metric)) {
                assertThat(report.metrics().byName().get(metric)).as(name).isCloseTo(value, within(1e-5));
            }
        });
    }

    /** Token weights of old over behavior, truncated at 2; at this version proximal is old. */
    private float[] oldWeights(int s) {
        float[] old = PackedFloats.toArray(trajectories.get(s).getOldLogProbs());
        float[] weights = new float[old.length];
        for (int t = 0; t < weights.length; t++) {
            weights[t] = mask(s, t) * (float) Math.min(2, Math.exp((double) old[t] - behavior(s)[t]));
        }
        return weights;
    }

    /** The mean over tokens of w·k3, with w = current / behavior, is added with its coefficient. */
    @Test
    void shouldAddTheDivergenceFromTheReferenceToTheLoss() {
        BatchOptimizer learner = open(PLAIN.with(a -> a.kl(new KlConfig.InLoss(
                KlDivergence.REVERSE,
                "",
                KlWeighting.DETACHED,
                new CoefficientConfig.Fixed(0.5),
                new ReferenceConfig.Version(0)))));
        learner.useReference(Weights.random(SHAPE, SyntheticRollouts.SEED));
        assertThat(learner.referenceVersion()).hasValue(0);

        StepReport report = learner.train(batch, VERSION, ControlState.initial(), moved(), learner.newOptimizer());

        double kl = 0;
        for (int s = 0; s < 8; s++) {
            float[] current = scores(s);
            for (int t = 0; t < current.length; t++) {
                double d = (double) current[t]
                        - PackedFloats.get(trajectories.get(s).getOldLogProbs(), t); // the same weights
                double w = Math.exp((double) current[t] - behavior(s)[t]);
                kl += mask(s, t) * w * (Math.exp(-d) - 1 + d) / trainedTokens();
            }
        }
        assertThat(report.metrics().byName().get("kl.loss")).isCloseTo(kl, within(1e-5));
        assertThat(report.metrics().byName().get("loss")
                        - report.metrics().byName().get("policy_loss"))
                .isCloseTo(0.5 * kl, within(1e-5));
        assertThat(report.metrics().byName())
                .containsEntry("kl.coefficient", 0.5)
                .containsEntry("forward_passes", 2.0);
        assertThat(report.controls().get("kl.coefficient")).hasValue(0.5);
    }

    /** In half the memory it gives the same result as in float32. */
    @Test
    void shouldSayTheSameOfAReferenceWhicheverTypeItsValuesAreHeldIn() {
        Weights rounded = Weights.random(SHAPE, SyntheticRollouts.SEED).as(Dtype.BF16);
        Map<String, Double> frozen = stepAgainst(rounded);
        Map<String, Double> whole = stepAgainst(rounded.as(Dtype.F32));
        assertThat(frozen.get("kl.loss")).isNotZero().isEqualTo(whole.get("kl.loss"));
        assertThat(frozen.get("grad_norm")).isNotZero().isEqualTo(whole.get("grad_norm"));
    }

    private Map<String, Double> stepAgainst(Weights reference) {
        BatchOptimizer learner = open(PLAIN.with(a -> a.kl(new KlConfig.InLoss(
                KlDivergence.REVERSE,
                "",
                KlWeighting.DETACHED,
                new CoefficientConfig.Fixed(0.5),
                new ReferenceConfig.Version(0)))));
        learner.useReference(reference);
        return learner.train(batch, VERSION, ControlState.initial(), moved(), learner.newOptimizer())
                .metrics()
                .byName();
    }

    /** Rewards less 0.1 Σ (proximal − reference), then less the mean of their group of two. */
    @Test
    void shouldTakeAdvantagesOfThePenalisedReward() {
        trajectories.forEach(trajectory -> trajectory.put(
                Trajectory.SCHEMA$.getField("reference_log_probs").pos(), trajectory.getBehaviorLogProbs()));
        BatchOptimizer learner = open(PLAIN.with(a -> a.kl(new KlConfig.InReward(
                KlDivergence.REVERSE,
                false,
                new CoefficientConfig.Adaptive(0.1, 0.01, 100),
                new ReferenceConfig.Recorded()))));

        StepReport report = learner.train(batch, VERSION, ControlState.initial(), moved(), learner.newOptimizer());

        double[] penalised = new double[8];
        double measured = 0;
        double reference = 0;
        for (int s = 0; s < 8; s++) {
            float[] current = scores(s);
            double kl = 0;
            int tokens = 0;
            for (int t = 0; t < current.length; t++) {
                reference += mask(s, t) * (double) behavior(s)[t];
                kl += mask(s, t) * ((double) current[t] - behavior(s)[t]);
                tokens += mask(s, t);
            }
            penalised[s] = trajectories.get(s).getReward() - 0.1 * kl;
            measured += kl / tokens / 8;
        }
        double loss = 0;
        for (int s = 0; s < 8; s++) {
            double advantage = penalised[s] - (penalised[s & ~1] + penalised[s | 1]) / 2;
            float[] current = scores(s);
            for (int t = 0; t < current.length; t++) {
                loss -= mask(s, t)
                        * Math.min(2, Math.exp((double) current[t] - behavior(s)[t]))
                        * advantage
                        * current[t]
                        / trainedTokens();
            }
        }
        assertThat(report.metrics().byName().get("policy_loss")).isCloseTo(loss, within(1e-5));
        assertThat(report.metrics().byName().get("kl.measured")).isCloseTo(measured, within(1e-5));
        assertThat(report.metrics().byName().get("kl.reference_log_prob"))
                .isCloseTo(reference / trainedTokens(), within(1e-5));
        double error = Math.max(-0.2, Math.min(0.2, measured / 0.01 - 1));
        assertThat(report.controls().get("kl.coefficient").orElseThrow())
                .as("the next step's")
                .isCloseTo(0.1 * (1 + error * 8 / 100), within(1e-9));
    }

    /** Rewards less 0.1 Σ min(w, 2) (1 − r), r = reference / proximal; measured is the mean of min(w, 2) (r log r − r + 1). */
    @Test
    void shouldWeighAForwardPenaltyAsTheUpdatesTokens() {
        trajectories.forEach(trajectory -> trajectory.put(
                Trajectory.SCHEMA$.getField("reference_log_probs").pos(), trajectory.getOldLogProbs()));
        BatchOptimizer learner = open(PLAIN.with(a -> a.kl(new KlConfig.InReward(
                KlDivergence.FORWARD, true, new CoefficientConfig.Fixed(0.1), new ReferenceConfig.Recorded()))));

        StepReport report = learner.train(batch, VERSION, ControlState.initial(), moved(), learner.newOptimizer());

        double penalties = 0;
        double measured = 0;
        for (int s = 0; s < 8; s++) {
            float[] current = scores(s);
            double kl = 0;
            int tokens = 0;
            for (int t = 0; t < current.length; t++) {
                double weight = Math.min(2, Math.exp((double) current[t] - behavior(s)[t]));
                double r = Math.exp(behavior(s)[t] - drift(s, t) - current[t]);
                penalties += mask(s, t) * 0.1 * weight * (1 - r) / 8;
                kl += mask(s, t) * weight * (r * Math.log(r) - r + 1);
                tokens += mask(s, t);
            }
            measured += kl / tokens / 8;
        }
        assertThat(report.metrics().byName().get("kl.penalty_mean")).isCloseTo(penalties, within(1e-6));
        assertThat(report.metrics().byName().get("kl.measured")).isCloseTo(measured, within(1e-6));
    }

    /** A + 2 (mean d − d_t), d = behavior − the step's own scores, whose mean is measured. */
    @Test
    void shouldCentreTheDriftOfTheSamplerFromTheLearner() {
        BatchOptimizer learner = open(PLAIN.with(
                a -> a.kl(new KlConfig.Centred(0, new CoefficientConfig.Fixed(2), new ReferenceConfig.Learner()))));

        StepReport report = learner.train(batch, VERSION, ControlState.initial(), moved(), learner.newOptimizer());

        double mean = 0;
        double measured = 0;
        for (int s = 0; s < 8; s++) {
            float[] current = scores(s);
            double ofSequence = 0;
            int tokens = 0;
            for (int t = 0; t < current.length; t++) {
                ofSequence += mask(s, t) * ((double) behavior(s)[t] - current[t]);
                tokens += mask(s, t);
            }
            mean += ofSequence / trainedTokens();
            measured += ofSequence / tokens / 8;
        }
        double loss = 0;
        for (int s = 0; s < 8; s++) {
            float[] current = scores(s);
            for (int t = 0; t < current.length; t++) {
                double d = (double) behavior(s)[t] - current[t];
                loss -= mask(s, t)
                        * Math.min(2, Math.exp(-d))
                        * (advantage(s) + 2 * (mean - d))
                        * current[t]
                        / trainedTokens();
            }
        }
        assertThat(report.metrics().byName().get("policy_loss")).isCloseTo(loss, within(1e-5));
        assertThat(report.metrics().byName().get("kl.measured")).isCloseTo(measured, within(1e-6));
    }

    /** A + 2 (mean d − d_t), d = behavior − reference, over what is trained on. */
    @Test
    void shouldCentreThePenaltyInTheAdvantages() {
        trajectories.forEach(trajectory -> trajectory.put(
                Trajectory.SCHEMA$.getField("reference_log_probs").pos(), trajectory.getOldLogProbs()));
        BatchOptimizer learner = open(PLAIN.with(
                a -> a.kl(new KlConfig.Centred(0, new CoefficientConfig.Fixed(2), new ReferenceConfig.Recorded()))));

        StepReport report = learner.train(batch, VERSION, ControlState.initial(), moved(), learner.newOptimizer());

        double mean = 0;
        for (int s = 0; s < 8; s++) {
            for (int t = 0; t < behavior(s).length; t++) {
                mean += mask(s, t) * drift(s, t) / trainedTokens();
            }
        }
        double loss = 0;
        for (int s = 0; s < 8; s++) {
            float[] current = scores(s);
            for (int t = 0; t < current.length; t++) {
                double weight = Math.min(2, Math.exp((double) current[t] - behavior(s)[t]));
                double penalised = advantage(s) + 2 * (mean - drift(s, t));
                loss -= mask(s, t) * weight * penalised * current[t] / trainedTokens();
            }
        }
        assertThat(report.metrics().byName().get("policy_loss")).isCloseTo(loss, within(1e-5));
        assertThat(report.stages())
                .filteredOn(stage -> stage.getStage().equals("kl_centred"))
                .singleElement()
                .satisfies(stage -> {
                    assertThat(stage.getTokensChanged()).isEqualTo(trainedTokens());
                    assertThat(stage.getValues()).containsEntry("coefficient", 2.0);
                });
    }

    private double drift(int s, int t) {
        return (double) behavior(s)[t] - PackedFloats.get(trajectories.get(s).getOldLogProbs(), t);
    }

    @Test
    void shouldRefuseADivergenceFromNothing() {
        assertThatThrownBy(() -> train(PLAIN.with(a -> a.kl(KlConfig.InLoss.defaults()))))
                .isInstanceOf(InconsistentBatchException.class)
                .hasMessageContainingAll(
                        "batch 3, rollout g0/0", "has no reference log-probs", "kl.reference.kind=version");
    }

    /** b = Σ g² w² R / Σ g² w² over each group of two, with gradients of one sequence at a time. */
    @Test
    void shouldHoldRewardsAgainstTheBaselineOfLeastVariance() {
        StepReport report = train(PLAIN.with(a -> a.advantage(Opob.defaults())));

        double[] norms = new double[8];
        double[] weights = new double[8];
        try (GradientSession session = new GradientSession(Engine.cpu(), SHAPE, 1024)) {
            for (int s = 0; s < 8; s++) {
                float[] trained = new float[behavior(s).length];
                double logWeight = 0;
                for (int t = 0; t < trained.length; t++) {
                    trained[t] = mask(s, t);
                    logWeight += mask(s, t) * ((double) scores(s)[t] - behavior(s)[t]);
                }
                Gradients gradient = new Gradients(SHAPE);
                session.accumulate(
                        moved(), sequence(s), new float[] {1f}, trained, new float[trained.length], gradient);
                norms[s] = gradient.l2Norm();
                weights[s] = Math.pow(norms[s] * Math.exp(logWeight), 2);
            }
        }
        double loss = 0;
        for (int s = 0; s < 8; s++) {
            int a = s & ~1;
            int b = s | 1;
            double baseline = (weights[a] * trajectories.get(a).getReward()
                            + weights[b] * trajectories.get(b).getReward())
                    / (weights[a] + weights[b]);
            float[] current = scores(s);
            for (int t = 0; t < current.length; t++) {
                loss -= mask(s, t)
                        * Math.min(2, Math.exp((double) current[t] - behavior(s)[t]))
                        * (trajectories.get(s).getReward() - baseline)
                        * current[t]
                        / trainedTokens();
            }
        }
        assertThat(value(report, "opob", "norm_max"))
                .isCloseTo(Arrays.stream(norms).max().orElseThrow(), within(1e-4));
        assertThat(report.metrics().byName().get("policy_loss")).isCloseTo(loss, within(1e-5));
        assertThat(value(report, "opob", "moved_mean")).isPositive();
    }

    @Test
    void shouldLowerTheStepWhenAnswersGetLonger() {
        double length = trajectories.stream()
                .mapToInt(t -> PackedInts.length(t.getResponseTokens()))
                .average()
                .orElseThrow();
        ControlState shorter = new ControlState(
                Map.of("length_guard.steps", 1.0, "length_guard.remembered", 1.0, "length_guard.tokens.0", length / 2));
        BatchOptimizer learner =
                open(PLAIN.with(a -> a.mode(Mode.RECORDED).lengthGuard(new LengthGuardConfig.Surge(1.2, 1, 0.5))));

        StepReport report = learner.train(batch, VERSION, shorter, moved(), learner.newOptimizer());

        assertThat(report.learningRate()).as("half of the rate").isCloseTo(1e-2 * 0.5, within(1e-12));
        assertThat(report.metrics().byName())
                .containsEntry("length_guard.scale", 0.5)
                .containsEntry("length_guard.tokens_before", length / 2);
        assertThat(report.controls().get("length_guard.tokens.0")).hasValue(length);
    }

    private static double value(StepReport report, String stage, String name) {
        return report.stages().stream()
                .filter(of -> of.getStage().equals(stage))
                .findFirst()
                .orElseThrow()
                .getValues()
                .get(name);
    }

    @Test
    void shouldSayHowMuchOfTheGradientTheWeightsMake() {
        Map<String, Double> weighed = train(PLAIN).metrics().byName();
        Map<String, Double> unweighed =
                train(PLAIN.with(a -> a.weights(new None()))).metrics().byName();

        assertThat(weighed.get("gradient_power_unweighted")).isPositive();
        assertThat(weighed.get("gradient_power")).isPositive().isNotEqualTo(weighed.get("gradient_power_unweighted"));
        assertThat(unweighed).doesNotContainKey("gradient_power");
    }

    @Test
    void shouldSayHowFarTheObjectiveLetsARatioGo() {
        Algorithm clipped = PLAIN.with(a -> a.objective(new DecoupledPpo(0.2, 0.28, 3)));

        assertThat(train(clipped).metrics().byName()).containsEntry("clip_ratio_high", 0.28);
        assertThat(train(PLAIN.with(a -> a.objective(new Reinforce())))
                        .metrics()
                        .byName())
                .doesNotContainKey("clip_ratio_high");
    }

    private StepReport train(Algorithm algorithm) {
        BatchOptimizer learner = open(algorithm);
        AdamW adamW = learner.newOptimizer();
        return learner.train(batch, VERSION, ControlState.initial(), moved(), adamW);
    }

    private BatchOptimizer open(Algorithm algorithm) {
        BatchOptimizer learner = new BatchOptimizer(Engine.cpu(), SHAPE, STEP, algorithm);
        opened.add(learner);
        return learner;
    }

    private static Weights moved() {
        return Weights.random(SHAPE, 99);
    }

    /** Nothing masked by the batch, step scale 1, advantages of groups of two. */
    private TrainingBatch batch() {
        List<BatchEntry> entries = new ArrayList<>();
        for (int s = 0; s < 8; s++) {
            entries.add(BatchEntry.newBuilder(SyntheticRollouts.entry(trajectories.get(s), 0, s))
                    .setAdvantage(advantage(s))
                    .build());
        }
        return TrainingBatch.of(SyntheticRollouts.batch(3, entries), trajectories);
    }

    private double advantage(int s) {
        return trajectories.get(s).getReward()
                - (trajectories.get(s & ~1).getReward()
                                + trajectories.get(s | 1).getReward())
                        / 2;
    }

    private long trainedTokens() {
        return trajectories.stream()
                .mapToLong(trajectory -> PackedMask.count(trajectory.getMask()))
                .sum();
    }

    private int mask(int s, int t) {
        return PackedMask.get(trajectories.get(s).getMask(), t);
    }

    private float[] behavior(int s) {
        return PackedFloats.toArray(trajectories.get(s).getBehaviorLogProbs());
    }

    /** Under the step's weights, one sequence at a time. */
    private float[] scores(int s) {
        return scoring.score(moved(), sequence(s), new float[] {1f}).logProbs();
    }

    private SequenceBatch sequence(int s) {
        int[] prompt = PackedInts.toArray(trajectories.get(s).getPromptTokens());
        int[] response = PackedInts.toArray(trajectories.get(s).getResponseTokens());
        int[] tokens = Arrays.copyOf(prompt, prompt.length + response.length);
        System.arraycopy(response, 0, tokens, prompt.length, response.length);
        return new SequenceBatch(new int[][] {tokens}, new int[] {prompt.length});
    }

    private static float[] floats(IntFunction<float[]> part, int[] offsets) {
        float[] packed = new float[offsets[8]];
        for (int s = 0; s < 8; s++) {
            System.arraycopy(part.apply(s), 0, packed, offsets[s], offsets[s + 1] - offsets[s]);
        }
        return packed;
    }

    private static byte[] bytes(IntFunction<byte[]> part, int[] offsets) {
        byte[] packed = new byte[offsets[8]];
        for (int s = 0; s < 8; s++) {
            System.arraycopy(part.apply(s), 0, packed, offsets[s], offsets[s + 1] - offsets[s]);
        }
        return packed;
    }
}
