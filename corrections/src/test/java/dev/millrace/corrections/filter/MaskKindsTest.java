package dev.millrace.corrections.filter;

import static dev.millrace.corrections.stage.StageExamples.decide;
import static dev.millrace.corrections.stage.StageExamples.facts;
import static dev.millrace.corrections.stage.StageExamples.last;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.RandomBatches;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.advantage.Grpo;
import dev.millrace.corrections.filter.DivergenceFilter.Metric;
import dev.millrace.corrections.length.LengthTrap;
import dev.millrace.corrections.m2po.M2po;
import dev.millrace.corrections.rollout.RejectionAggregation;
import dev.millrace.corrections.stage.Decision;
import dev.millrace.corrections.stage.MaskStage;
import dev.millrace.corrections.stage.StageBatch;
import dev.millrace.corrections.stage.StageExamples;
import dev.millrace.corrections.stage.StageFacts;
import dev.millrace.corrections.stage.StageInput;
import dev.millrace.corrections.staleness.SequenceMask;
import dev.millrace.corrections.trm.ExactTrustRegionMask;
import dev.millrace.corrections.trm.FullDistributions;
import dev.millrace.corrections.trm.SampledTrustRegionMask;
import dev.millrace.corrections.trm.TopKDistributions;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Kinds of masks as stages. */
class MaskKindsTest {
    /** Both tokens of sequence 1, of negative advantage, have become less likely; one of sequence 0 more likely. */
    private static final double[] FAR = {0.9, 0, -2, -3, 0, 0, 0, 0};

    private static Stream<MaskStage> masks() {
        return Stream.of(
                M2po.defaults(),
                SequenceMask.defaults(),
                ForcedTokenMask.defaults(),
                SampledTrustRegionMask.defaults(),
                new ExactTrustRegionMask(0.01, 0),
                new ProbabilityDifferenceMask(0.3),
                DoubleSidedMask.defaults(),
                BinaryKlMask.defaults(),
                new RandomRejection(0.5, RandomRejection.Level.TOKEN, 1),
                new RandomRejection(0.7, RandomRejection.Level.SEQUENCE, 1),
                ZeroAdvantageMask.defaults(),
                new BatchDivergenceFilter(0.1),
                new DivergenceFilterMask(Metric.RATIO, RejectionAggregation.TOKEN, "0.5_2"));
    }

    /** Groups 0 with rewards 1 and 0, group 1 with equal ones; distributions of two words; the last token forced. */
    private static StageFacts.Builder everything() {
        StageFacts base = facts(FAR).build();
        float[] behavior = base.vector(StageInput.BEHAVIOR).clone();
        behavior[7] = -0.001f;
        float[] proximal = base.vector(StageInput.PROXIMAL).clone();
        proximal[7] = -0.001f;
        return base.toBuilder()
                .rewards(new double[] {1, 0, 1, 1})
                .vector(StageInput.BEHAVIOR, behavior)
                .vector(StageInput.PROXIMAL, proximal)
                .distributions(new FullDistributions(2, pairs(behavior), pairs(proximal)));
    }

    private static float[] pairs(float[] logProbs) {
        float[] pairs = new float[2 * logProbs.length];
        for (int t = 0; t < logProbs.length; t++) {
            pairs[2 * t] = logProbs[t];
            pairs[2 * t + 1] = (float) Math.log1p(-Math.exp(logProbs[t]));
        }
        return pairs;
    }

    @ParameterizedTest
    @MethodSource("masks")
    void shouldActOnABatchMadeForIt(MaskStage mask) {
        Decision decision = decide(everything(), Grpo.defaults(), mask);

        assertThat(last(decision).tokensActed()).isPositive();
        assertThat(last(decision).tokensActed()).isEqualTo(8 - decision.left().trainedTokens());
        assertThat(last(decision).stage()).isEqualTo(mask.name());
    }

    @ParameterizedTest
    @MethodSource("masks")
    void shouldMaskNothingOfNothing(MaskStage mask) {
        StageFacts.Builder starved = StageExamples.starved().toBuilder()
                .distributions(new FullDistributions(2, pairs(new float[8]), pairs(new float[8])));
        Decision decision = decide(starved, Grpo.defaults(), mask);

        assertThat(last(decision).tokensSeen()).isZero();
        assertThat(last(decision).tokensActed()).isZero();
    }

    @Test
    void shouldDropTokensByTheDifferenceOfProbabilities() {
        // behavior e^-1 = 0.368: of 0.905 the difference is 0.537, of e^-3 = 0.050 it is 0.318, of e^-1.5 = 0.223 0.145
        Decision decision = decide(facts(0.9, 0, -2, -0.5, 0, 0, 0, 0), new ProbabilityDifferenceMask(0.318));
        assertThat(decision.left().mask()).containsExactly(0, 1, 0, 1, 1, 1, 1, 1);
        assertThat(decide(facts(0.9, 0, -2, -0.5, 0, 0, 0, 0), new ProbabilityDifferenceMask(0.3182))
                        .left()
                        .mask())
                .containsExactly(0, 1, 1, 1, 1, 1, 1, 1);
        assertThatThrownBy(() -> new ProbabilityDifferenceMask(1))
                .hasMessageContaining("epsilon must be in (0, 1): 1.0");
    }

    @Test
    void shouldDropTokensOutsideBothSides() {
        Decision decision = decide(
                facts(Math.log(1.2), Math.log(1.4), Math.log(0.9), Math.log(0.7), 0, 0, 0, 0),
                DoubleSidedMask.defaults());

        assertThat(decision.left().mask()).containsExactly(1, 0, 1, 0, 1, 1, 1, 1);
        assertThatThrownBy(() -> new DoubleSidedMask(1, 0.2)).hasMessageContaining("clip_ratio_low must be in (0, 1)");
        assertThatThrownBy(() -> new DoubleSidedMask(0.2, 0)).hasMessageContaining("clip_ratio_high must be positive");
    }

    @Test
    void shouldDropSequencesByTheirMeanBinaryKl() {
        // p = e^-3, q = e^-1: p log(p/q) + (1-p) log((1-p)/(1-q)) over one token of two
        double p = Math.exp(-3);
        double q = Math.exp(-1);
        double mean = (p * -2 + (1 - p) * Math.log((1 - p) / (1 - q))) / 2;
        double[] logRatios = {-2, 0, 0, 0, 0, 0, 0, 0};

        assertThat(decide(facts(logRatios), new BinaryKlMask(mean + 1e-6))
                        .left()
                        .trainedTokens())
                .isEqualTo(8);
        Decision decision = decide(facts(logRatios), new BinaryKlMask(mean - 1e-6));
        assertThat(decision.left().mask()).containsExactly(0, 0, 1, 1, 1, 1, 1, 1);
        assertThat(last(decision).values().get("mean_binary_kl")).isCloseTo(mean / 4, within(1e-6));
        assertThat(BinaryKlMask.divergence(0, 0)).as("certainty on both sides").isZero();
        assertThatThrownBy(() -> new BinaryKlMask(0)).hasMessageContaining("threshold must be positive and finite");
    }

    @Test
    void shouldRejectTheSameAtRandomWhereverItIsDecided() {
        RandomRejection half = new RandomRejection(0.5, RandomRejection.Level.SEQUENCE, 5);
        RandomBatches random = new RandomBatches(9);
        long rejected = 0;
        long sequences = 0;
        for (int trial = 0; trial < 200; trial++) {
            TokenBatch batch = random.next();
            float[] behavior = random.logProbs(batch);
            StageFacts here = StageFacts.of(batch, new double[batch.sequenceCount()])
                    .vector(StageInput.BEHAVIOR, behavior)
                    .build();
            Decision one = StageBatch.decide(here, List.of(half));
            Decision again = StageBatch.decide(
                    here.toBuilder().rewards(new double[batch.sequenceCount()]).build(), List.of(half));
            assertThat(again.left().mask()).isEqualTo(one.left().mask());
            rejected += last(one).sequencesActed();
            sequences += last(one).sequencesSeen();
        }
        assertThat(rejected / (double) sequences).isBetween(0.42, 0.58);
        assertThatThrownBy(() -> new RandomRejection(1, RandomRejection.Level.TOKEN, 0))
                .hasMessageContaining("share must be in (0, 1): 1.0");
    }

    /** The state of a sequence is SplitMix64 over its place and the bits of its log-probs; the JDK's generator goes on from it. */
    @Test
    void shouldDrawAsSplitMixDoes() {
        TokenBatch batch = new TokenBatch(new int[] {0, 3, 5}, new byte[] {1, 1, 0, 1, 1});
        float[] behavior = {-0.5f, -1, Float.NaN, -2, -0.25f};
        StageFacts facts = StageFacts.of(batch, new double[2])
                .vector(StageInput.BEHAVIOR, behavior)
                .build();
        byte[] tokens = new byte[5];
        byte[] sequences = new byte[5];
        for (int s = 0; s < 2; s++) {
            long state = new SplittableRandom(7 + (s - 1) * 0x9E3779B97F4A7C15L).nextLong();
            for (int t = batch.start(s); t < batch.end(s); t++) {
                state = batch.isTrained(t)
                        ? new SplittableRandom(state + Float.floatToIntBits(behavior[t])).nextLong()
                        : state;
            }
            double ofSequence = new SplittableRandom(state).nextDouble();
            SplittableRandom ofTokens = new SplittableRandom(state);
            for (int t = batch.start(s); t < batch.end(s); t++) {
                tokens[t] = (byte) (ofTokens.nextDouble() < 0.5 ? 0 : batch.trained(t));
                sequences[t] = (byte) (ofSequence < 0.5 ? 0 : batch.trained(t));
            }
        }

        assertThat(decide(facts.toBuilder(), new RandomRejection(0.5, RandomRejection.Level.TOKEN, 7))
                        .left()
                        .mask())
                .containsExactly(tokens);
        assertThat(decide(facts.toBuilder(), new RandomRejection(0.5, RandomRejection.Level.SEQUENCE, 7))
                        .left()
                        .mask())
                .containsExactly(sequences);
    }

    @Test
    void shouldRejectTokensAtTheShareThatIsSet() {
        TokenBatch many = new TokenBatch(new int[] {0, 20_000}, ones(20_000));
        float[] behavior = new float[20_000];
        Arrays.fill(behavior, -1f);
        StageFacts facts = StageFacts.of(many, new double[1])
                .vector(StageInput.BEHAVIOR, behavior)
                .build();
        List<Long> acted = new ArrayList<>();
        for (long seed = 0; seed < 3; seed++) {
            acted.add(last(StageBatch.decide(
                            facts, List.of(new RandomRejection(0.25, RandomRejection.Level.TOKEN, seed))))
                    .tokensActed());
        }

        assertThat(acted).allSatisfy(tokens -> assertThat(tokens).isBetween(4_700L, 5_300L));
        assertThat(acted).doesNotHaveDuplicates();
    }

    private static byte[] ones(int n) {
        byte[] mask = new byte[n];
        Arrays.fill(mask, (byte) 1);
        return mask;
    }

    @Test
    void shouldDropGroupsThatTeachNothing() {
        Decision decision = decide(everything(), Grpo.defaults(), ZeroAdvantageMask.defaults());

        assertThat(decision.left().mask()).containsExactly(1, 1, 1, 1, 0, 0, 0, 0);
        assertThat(decision.maskedBy()).containsExactly(null, null, "zero_advantage", "zero_advantage");
        assertThat(last(decision).values()).containsEntry("groups_dropped", 1.0);
        assertThat(last(decision).unit()).isEqualTo(CorrectionUnit.GROUP);
        assertThat(decide(everything(), Grpo.defaults(), new ZeroAdvantageMask(0.5))
                        .left()
                        .trainedTokens())
                .as("a tolerance of the largest advantage drops every group")
                .isZero();
    }

    @Test
    void shouldDropTheWholeBatchOrNothing() {
        double mean = (Math.expm1(1) - 1) / 8;
        assertThat(decide(facts(1, 0, 0, 0, 0, 0, 0, 0), new BatchDivergenceFilter(mean - 1e-6))
                        .left()
                        .trainedTokens())
                .isZero();
        Decision kept = decide(facts(1, 0, 0, 0, 0, 0, 0, 0), new BatchDivergenceFilter(mean + 1e-6));
        assertThat(kept.left().trainedTokens()).isEqualTo(8);
        assertThat(last(kept).values().get("mean_k3")).isCloseTo(mean, within(1e-6));
        assertThatThrownBy(() -> new BatchDivergenceFilter(0)).hasMessageContaining("max_mean_k3 must be positive");
    }

    @Test
    void shouldReadArealsBoundsFromText() {
        Decision decision = decide(
                facts(1, 0, -1, 0, 0, 0, 0, 0),
                new DivergenceFilterMask(Metric.K1, RejectionAggregation.TOKEN, "-0.5_0.5"));

        assertThat(decision.left().mask()).containsExactly(0, 1, 0, 1, 1, 1, 1, 1);
        assertThat(last(decision).values()).containsEntry("filtered_fraction", 0.25);
        assertThatThrownBy(() -> new DivergenceFilterMask(Metric.RATIO, RejectionAggregation.TOKEN, "many"))
                .hasMessageContaining("threshold must be a number or lower_upper: 'many'");
    }

    @Test
    void shouldMaskForcedTokensByLogProbAndByRecord() {
        boolean[] forced = new boolean[8];
        forced[0] = true;
        forced[7] = true;
        Decision decision = decide(everything().forcedTokens(forced), ForcedTokenMask.defaults());

        assertThat(decision.left().mask()).containsExactly(0, 1, 1, 1, 1, 1, 1, 0);
        assertThat(last(decision).values())
                .containsEntry("forced_above", -0.01)
                .containsEntry("prompt_fraction", 0.0)
                .containsEntry("forced_fraction", 0.125)
                .containsEntry("recorded_tokens", 2.0);
        assertThat(ForcedTokenMask.defaults().optionalInputs()).containsExactly(StageInput.FORCED_TOKENS);
    }

    @Test
    void shouldReportMaskRateAndBoundsOfTheTrustRegion() {
        Decision exact = decide(everything(), new ExactTrustRegionMask(0.01, 0));
        assertThat(exact.left().mask()).containsExactly(0, 0, 0, 0, 1, 1, 1, 1);
        assertThat(last(exact).values())
                .containsEntry("mask_rate", 0.5)
                .containsEntry("certified", 1.0)
                .containsKeys("largest_token_kl", "mean_sequence_kl", "bound_trpo", "bound_pinsker", "bound_mixed");
        assertThat(last(exact).values().get("bound_trpo"))
                .as("kept tokens are on policy")
                .isZero();

        StageFacts known = everything().build();
        Decision topK = decide(
                everything()
                        .distributions(new TopKDistributions(
                                1, known.vector(StageInput.BEHAVIOR), known.vector(StageInput.PROXIMAL))),
                new ExactTrustRegionMask(0.01, 0));
        assertThat(topK.left().mask()).isEqualTo(exact.left().mask());
        assertThat(last(topK).values()).containsEntry("certified", 0.0);
    }

    @Test
    void shouldCertifyTheSurrogateMinusTheSmallestBound() {
        // group 0 has rewards 1 and 0; tokens of probability e^-1 move by 0.1 and -0.1 in log space
        StageFacts known = facts(0.1, 0, -0.1, 0, 0, 0, 0, 0).build();
        StageFacts.Builder moved = known.toBuilder()
                .rewards(new double[] {1, 0, 1, 1})
                .distributions(new FullDistributions(
                        2, pairs(known.vector(StageInput.BEHAVIOR)), pairs(known.vector(StageInput.PROXIMAL))));
        Map<String, Double> values =
                last(decide(moved, new ExactTrustRegionMask(0.05, 0))).values();

        double surrogate = (0.5 * Math.expm1(0.1) - 0.5 * Math.expm1(-0.1)) / 4;
        assertThat(values.get("surrogate")).isCloseTo(surrogate, within(1e-6));
        // two tokens: T (T - 1) delta is the smallest bound of 2 delta, 3.77 delta and 4 sqrt(delta D)
        double p = Math.exp(-1);
        double delta = p * -0.1 + (1 - p) * Math.log((1 - p) / (1 - p * Math.exp(0.1)));
        double shrunk = p * 0.1 + (1 - p) * Math.log((1 - p) / (1 - p * Math.exp(-0.1)));
        double mixed = 4 * Math.sqrt(delta * (delta + shrunk) / 4);
        assertThat(values.get("bound_trpo")).isCloseTo(2 * delta, within(1e-6)).isLessThan(mixed);
        assertThat(values.get("certificate"))
                .isCloseTo(surrogate - 2 * delta, within(1e-6))
                .isPositive();

        assertThat(last(decide(moved.rewards(new double[] {2, 0, 1, 1}), new ExactTrustRegionMask(0.05, 0)))
                        .values())
                .as("the bounds are of rewards in [0, 1]")
                .doesNotContainKeys("surrogate", "certificate");
    }

    @Test
    void shouldReportTheAdaptiveBoundOfSamples() {
        Decision decision = decide(facts(0.1, 0, -2.5, 0, 0, 0, 0, 0), SampledTrustRegionMask.defaults());

        assertThat(decision.left().mask()).containsExactly(1, 1, 0, 0, 1, 1, 1, 1);
        // kept: mean |rho - 1| / 2 at the first position, over three sequences, times 4 · min(1, 1)
        assertThat(last(decision).values().get("bound_adaptive")).isCloseTo(4 * Math.expm1(0.1) / 2 / 3, within(1e-6));
        assertThat(last(decision).values()).containsEntry("mask_rate", 0.25).containsEntry("mean_k3", 0.0);
        assertThatThrownBy(() -> new SampledTrustRegionMask(-1, 0)).hasMessageContaining("max_abs_log_ratio must be");
    }

    @Test
    void shouldObserveALengthTrap() {
        TokenBatch tokens = new TokenBatch(new int[] {0, 1, 2, 3, 4, 12, 20, 28, 36}, ones(36), new int[8]);
        float[] behavior = new float[36];
        float[] proximal = new float[36];
        Arrays.fill(behavior, -1f);
        Arrays.fill(proximal, -1f);
        Arrays.fill(proximal, 4, 36, -4f);
        StageFacts facts = StageFacts.of(tokens, new double[8])
                .vector(StageInput.BEHAVIOR, behavior)
                .vector(StageInput.PROXIMAL, proximal)
                .build();

        Decision decision = StageBatch.decide(facts, List.of(SampledTrustRegionMask.defaults(), LengthTrap.defaults()));

        assertThat(last(decision).stage()).isEqualTo("length_trap");
        assertThat(last(decision).tokensActed()).isZero();
        assertThat(last(decision).values())
                .containsEntry("rejected", 4.0)
                .containsEntry("rank_correlation", 1.0)
                .containsEntry("rejection_rate_from_1", 0.0)
                .containsEntry("rejection_rate_from_8", 1.0);
    }
}
