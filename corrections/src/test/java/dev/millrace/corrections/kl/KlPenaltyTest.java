package dev.millrace.corrections.kl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.corrections.NonFiniteLogProbException;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.advantage.Gdpo;
import dev.millrace.corrections.advantage.Grpo;
import dev.millrace.corrections.stage.Decision;
import dev.millrace.corrections.stage.StageExamples;
import dev.millrace.corrections.stage.StageFacts;
import dev.millrace.corrections.stage.StageInput;
import java.util.List;
import java.util.Map;
import java.util.OptionalDouble;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class KlPenaltyTest {
    private static final float NAN = Float.NaN;
    /** Trained tokens 2, 0, 1. */
    private final TokenBatch batch = new TokenBatch(new int[] {0, 3, 4, 5}, new byte[] {1, 0, 1, 0, 1});

    private final float[] current = {-1, NAN, -2, NAN, -1};
    private final float[] reference = {-2, NAN, -2.5f, NAN, -4};
    private final float[] unread = {NAN, NAN, NAN, NAN, NAN};

    @Test
    void shouldKnowTheDerivativeOfEveryEstimator() {
        double step = 1e-6;
        for (KlForm form : KlForm.values()) {
            for (double d = -4.05; d < 25; d += 0.1) {
                double slope = (form.value(d + step) - form.value(d - step)) / (2 * step);

                assertThat(form.derivative(d))
                        .as("%s at %s", form, d)
                        .isCloseTo(slope, within(1e-4 * (1 + Math.abs(slope))));
            }
        }
    }

    @Test
    void shouldKnowVerlsNames() {
        assertThat(KlEstimator.named("kl")).isEqualTo(new KlEstimator(KlForm.K1, false));
        assertThat(KlEstimator.named("k3+")).isEqualTo(new KlEstimator(KlForm.K3_CAPPED, true));
        assertThat(KlEstimator.named("mse").value(2)).isEqualTo(2);
        assertThat(KlEstimator.named("k1+").derivative(3)).isEqualTo(3);
        assertThat(KlEstimator.named("k3").value(-15)).isEqualTo(10);
        assertThatThrownBy(() -> KlEstimator.named("full")).hasMessageContaining("unknown KL estimator: full");
    }

    @Test
    void shouldPenaliseTrainedTokensAndMeasureTrainedSequences() {
        // d: 1, 0.5 | — | 3
        InRewardPenalty penalty = new InRewardPenalty(KlDivergence.REVERSE);

        assertThat(penalty.penalise(batch, new double[] {0, 9, 1, 9, 2}, current, unread, reference, 0.1))
                .containsExactly(new double[] {-0.1, 9, 0.95, 9, 1.7}, within(1e-9));
        assertThat(penalty.measure(batch, current, unread, reference)).isCloseTo((0.75 + 3) / 2, within(1e-9));
    }

    @Test
    void shouldCountMaskedSequencesAsZeroDivergenceOnlyAsReference() {
        InRewardPenalty reproduced = InRewardPenalty.asReference(new KlEstimator(KlForm.K1, false));

        assertThat(reproduced.measure(batch, current, unread, reference)).isCloseTo((0.75 + 3) / 3, within(1e-9));
    }

    @Test
    void shouldChargeForTheForwardDivergenceByItsGradientAndMeasureItsValue() {
        // d = log 2 and −log 2: r = 1/2 and 2, so 1 − r = 1/2 and −1, and r log r − r + 1 = 1/2 − log(2)/2 and 2 log 2
        // − 1
        TokenBatch two = new TokenBatch(new int[] {0, 1, 2}, new byte[] {1, 1});
        float[] policy = {-1, -1};
        float[] unlike = {(float) (-1 - Math.log(2)), (float) (-1 + Math.log(2))};
        InRewardPenalty forward = new InRewardPenalty(KlDivergence.FORWARD);

        assertThat(forward.penalise(two, new double[] {1, 1}, policy, new float[] {NAN, NAN}, unlike, 0.1))
                .containsExactly(new double[] {0.95, 1.1}, within(1e-7));
        assertThat(forward.measure(two, policy, new float[] {NAN, NAN}, unlike))
                .isCloseTo((0.5 - Math.log(2) / 2 + 2 * Math.log(2) - 1) / 2, within(1e-7));
    }

    @Test
    void shouldWeighThePenaltyByCurrentOverBehaviorUpToTheCap() {
        // weights 4 and 1/2, d = 1 and 3
        TokenBatch two = new TokenBatch(new int[] {0, 2}, new byte[] {1, 1});
        float[] policy = {-1, -1};
        float[] sampler = {(float) (-1 - Math.log(4)), (float) (-1 + Math.log(2))};
        float[] unlike = {-2, -4};

        assertThat(InRewardPenalty.weighted(KlDivergence.REVERSE, OptionalDouble.empty())
                        .penalise(two, new double[2], policy, sampler, unlike, 0.1))
                .containsExactly(new double[] {-0.4, -0.15}, within(1e-7));
        InRewardPenalty capped = InRewardPenalty.weighted(KlDivergence.REVERSE, OptionalDouble.of(2));
        assertThat(capped.penalise(two, new double[2], policy, sampler, unlike, 0.1))
                .containsExactly(new double[] {-0.2, -0.15}, within(1e-7));
        assertThat(capped.measure(two, policy, sampler, unlike)).isCloseTo((2 + 1.5) / 2, within(1e-7));
        assertThatThrownBy(() -> capped.measure(two, policy, new float[] {-1, NAN}, unlike))
                .isInstanceOf(NonFiniteLogProbException.class);
    }

    /** Σ_y μ w f = Σ_y q f: what is measured from another policy's tokens is the divergence, whichever the policy. */
    @ParameterizedTest
    @EnumSource(KlDivergence.class)
    void shouldMeasureTheDivergenceFromTokensOfAnotherPolicy(KlDivergence divergence) {
        double[] q = {0.5, 0.3, 0.2};
        double[] p = {0.2, 0.2, 0.6};
        double[] mu = {0.1, 0.6, 0.3};
        InRewardPenalty penalty = InRewardPenalty.weighted(divergence, OptionalDouble.empty());
        TokenBatch one = new TokenBatch(new int[] {0, 1}, new byte[] {1});
        double expected = 0;
        double exact = 0;
        double advantage = 0;
        double gradient = 0;
        for (int y = 0; y < 3; y++) {
            float[] policy = {(float) Math.log(q[y])};
            float[] sampler = {(float) Math.log(mu[y])};
            float[] unlike = {(float) Math.log(p[y])};
            double score = (y == 0 ? 1 : 0) - q[0]; // of the first logit
            expected += mu[y] * penalty.measure(one, policy, sampler, unlike);
            advantage -= mu[y] * score * penalty.penalise(one, new double[1], policy, sampler, unlike, 1)[0];
            exact += divergence == KlDivergence.REVERSE ? q[y] * Math.log(q[y] / p[y]) : p[y] * Math.log(p[y] / q[y]);
            gradient += divergence == KlDivergence.REVERSE ? q[y] * score * Math.log(q[y] / p[y]) : -p[y] * score;
        }
        assertThat(expected).isCloseTo(exact, within(1e-6));
        assertThat(advantage).as("through an unweighted policy gradient").isCloseTo(gradient, within(1e-6));
    }

    @Test
    void shouldAgreeWithANaiveTwinOnRandomRaggedBatches() {
        Random random = new Random(7);
        for (int round = 0; round < 200; round++) {
            int[] offsets = new int[2 + random.nextInt(4)];
            for (int s = 1; s < offsets.length; s++) {
                offsets[s] = offsets[s - 1] + random.nextInt(4);
            }
            int tokens = offsets[offsets.length - 1];
            byte[] mask = new byte[tokens];
            float[] policy = new float[tokens];
            float[] sampler = new float[tokens];
            float[] unlike = new float[tokens];
            for (int t = 0; t < tokens; t++) {
                mask[t] = (byte) random.nextInt(2);
                policy[t] = -3 * random.nextFloat();
                sampler[t] = -3 * random.nextFloat();
                unlike[t] = -3 * random.nextFloat();
            }
            boolean forward = random.nextBoolean();
            boolean weighted = random.nextBoolean();
            KlDivergence divergence = forward ? KlDivergence.FORWARD : KlDivergence.REVERSE;
            InRewardPenalty penalty = weighted
                    ? InRewardPenalty.weighted(divergence, OptionalDouble.of(1.5))
                    : new InRewardPenalty(divergence);
            double[] expected = new double[tokens];
            double sum = 0;
            int counted = 0;
            for (int s = 0; s + 1 < offsets.length; s++) {
                double ofSequence = 0;
                int trained = 0;
                for (int t = offsets[s]; t < offsets[s + 1]; t++) {
                    double w = weighted ? Math.min(1.5, Math.exp((double) policy[t] - sampler[t])) : 1;
                    double r = Math.exp((double) unlike[t] - policy[t]);
                    expected[t] = mask[t] == 0 ? 0 : -0.3 * w * (forward ? 1 - r : -Math.log(r));
                    ofSequence += mask[t] == 0 ? 0 : w * (forward ? r * Math.log(r) - r + 1 : -Math.log(r));
                    trained += mask[t];
                }
                sum += trained == 0 ? 0 : ofSequence / trained;
                counted += trained == 0 ? 0 : 1;
            }
            TokenBatch ragged = new TokenBatch(offsets, mask);

            assertThat(penalty.penalise(ragged, new double[tokens], policy, sampler, unlike, 0.3))
                    .containsExactly(expected, within(1e-9));
            assertThat(penalty.measure(ragged, policy, sampler, unlike))
                    .isCloseTo(sum / Math.max(1, counted), within(1e-9));
        }
    }

    @Test
    void shouldSteerTheCoefficientTowardsTheTarget() {
        CoefficientConfig controller = new CoefficientConfig.Adaptive(1.0, 0.1, 100);

        assertThat(controller.updated(1, 0.11, 10)).isCloseTo(1.01, within(1e-12));
        assertThat(controller.updated(1, 0.0, 10)).isCloseTo(0.98, within(1e-12));
        assertThat(controller.updated(1, 5, 10)).as("the error is clipped").isCloseTo(1.02, within(1e-12));
        assertThat(controller.updated(3, 5, 10)).isCloseTo(3.06, within(1e-12));
        assertThat(new CoefficientConfig.Fixed(0.3).updated(0.3, 5, 10)).isEqualTo(0.3);
        assertThatThrownBy(() -> controller.updated(1, 0, 501)).hasMessageContaining("501 sequences are too many");
        assertThatThrownBy(() -> controller.updated(1, Double.NaN, 1)).hasMessageContaining("NaN");
        assertThatThrownBy(() -> new CoefficientConfig.Fixed(-1)).hasMessageContaining("-1.0");
        assertThatThrownBy(() -> new CoefficientConfig.Adaptive(1, 0, 1)).hasMessageContaining("target");
        assertThatThrownBy(() -> new CoefficientConfig.Adaptive(1, 1, 0)).hasMessageContaining("horizon");
    }

    @Test
    void shouldMoveAdvantageFromTokensThatDriftedMostWithoutChangingTheSum() {
        // d: 1, 0.5, 3; mean 1.5
        float[] adjusted =
                new AverageCentredPenalty(2, 0).apply(batch, new float[] {1, 7, 1, NAN, 1}, current, reference);

        assertThat(adjusted).containsExactly(2, 7, 3, NAN, -2);
    }

    @Test
    void shouldChargeForLaterDriftUnderADiscount() {
        float[] adjusted = new AverageCentredPenalty(1, 0.5).apply(batch, new float[5], current, reference);

        // token 2: 1.5 − 0.5 = 1; token 0: 0.5 + 0.5·1; the last: −1.5
        assertThat(adjusted).containsExactly(1, 0, 1, 0, -1.5f);
        assertThatThrownBy(() -> new AverageCentredPenalty(1, 1.5)).hasMessageContaining("discount");
        assertThatThrownBy(() -> new AverageCentredPenalty(Double.NaN, 0)).hasMessageContaining("NaN");
    }

    @Test
    void shouldLeaveABatchWithoutTrainedTokensAlone() {
        TokenBatch nothing = new TokenBatch(new int[] {0, 2}, new byte[] {0, 0});
        float[] garbage = {NAN, NAN};

        assertThat(new AverageCentredPenalty(1, 0).apply(nothing, new float[] {4, 5}, garbage, garbage))
                .containsExactly(4, 5);
        assertThat(new InRewardPenalty(KlDivergence.REVERSE).measure(nothing, garbage, garbage, garbage))
                .isZero();
    }

    @Test
    void shouldCentreThePenaltyInTheAdvantagesOfAStage() {
        // behavior -1 throughout; reference -1.5 at the first of eight tokens: d = 0.5 there, 0.0625 on average
        float[] reference = {-1.5f, -1, -1, -1, -1, -1, -1, -1};
        StageFacts.Builder facts = StageExamples.facts().vector(StageInput.REFERENCE, reference);
        Decision decision = StageExamples.decide(facts, Grpo.defaults(), new AverageCentredPenalty(2, 0));

        float[] advantages = decision.perToken();
        assertThat(advantages[0]).isCloseTo(0.5f + 2 * (0.0625f - 0.5f), within(1e-6f));
        assertThat(advantages[1]).isCloseTo(0.5f + 2 * 0.0625f, within(1e-6f));
        assertThat(advantages[2]).isCloseTo(-0.5f + 2 * 0.0625f, within(1e-6f));
        assertThat(StageExamples.last(decision).stage()).isEqualTo("kl_centred");
        assertThat(StageExamples.last(decision).tokensActed()).isEqualTo(8);
        assertThat(StageExamples.last(decision).values().get("mean")).isCloseTo(0.0625, within(1e-9));
    }

    @Test
    void shouldPenaliseRewardsBeforeAdvantagesAreTaken() {
        // proximal is behavior; the reference finds the first token half a nat less likely
        float[] reference = {-1.5f, -1, -1, -1, -1, -1, -1, -1};
        Decision decision = StageExamples.decide(
                StageExamples.facts().vector(StageInput.REFERENCE, reference),
                new KlInReward(0.2, new InRewardPenalty(KlDivergence.REVERSE)),
                Grpo.defaults());

        assertThat(decision.rewards()).containsExactly(new double[] {0.9, 0, 1, 0}, within(1e-7));
        assertThat(decision.advantages()).containsExactly(new double[] {0.45, -0.45, 0.5, -0.5}, within(1e-7));
        assertThat(decision.outcomes().get(0).stage()).isEqualTo("kl_in_reward");
        assertThat(decision.outcomes().get(0).tokensActed()).isEqualTo(2);
        assertThat(decision.outcomes().get(0).values().get("mean_penalty")).isCloseTo(0.025, within(1e-8));
    }

    @Test
    void shouldPenaliseAlsoWhereTheOutcomeIsNotWhatIsCredited() {
        float[] reference = {-1.5f, -1, -1, -1, -1, -1, -1, -1};
        StageFacts.Builder components = StageExamples.facts()
                .vector(StageInput.REFERENCE, reference)
                .rewardComponents(List.of(Map.of("a", 1.0), Map.of("a", 0.0), Map.of("a", 1.0), Map.of("a", 0.0)));

        assertThat(StageExamples.decide(
                                components,
                                new KlInReward(0.2, new InRewardPenalty(KlDivergence.REVERSE)),
                                Gdpo.defaults())
                        .advantages()[0])
                .isNotEqualTo(StageExamples.decide(components, Gdpo.defaults()).advantages()[0]);
    }
}
