package dev.millrace.corrections.kl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.corrections.NonFiniteLogProbException;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.objective.GlobalBatch;
import dev.millrace.corrections.objective.LossAggregation;
import dev.millrace.corrections.objective.ObjectiveInput;
import dev.millrace.corrections.objective.ObjectiveResult;
import dev.millrace.corrections.objective.Reinforce;
import dev.millrace.corrections.objective.UpdateFacts;
import java.util.ArrayList;
import java.util.List;
import java.util.function.DoubleBinaryOperator;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

class KlPlanTest {
    private static final DoubleBinaryOperator REVERSE = (q, p) -> q * Math.log(q / p);
    private static final DoubleBinaryOperator FORWARD = (q, p) -> p * Math.log(p / q);
    private static final double TOLERANCE = 1e-5;

    private static DoubleBinaryOperator exact(KlDivergence divergence) {
        return divergence == KlDivergence.REVERSE ? REVERSE : FORWARD;
    }

    static Stream<Arguments> divergencesAndSamplings() {
        List<Arguments> all = new ArrayList<>();
        for (KlDivergence divergence : KlDivergence.values()) {
            for (KlSampling sampling : KlSampling.values()) {
                all.add(Arguments.of(divergence, sampling));
            }
        }
        return all.stream();
    }

    @ParameterizedTest
    @MethodSource("divergencesAndSamplings")
    void shouldHaveTheDivergenceAsExpectation(KlDivergence divergence, KlSampling sampling) {
        for (int seed = 0; seed < 20; seed++) {
            Vocabulary vocabulary = Vocabulary.random(seed);

            assertThat(vocabulary.expectedValue(KlPlan.of(divergence, sampling, KlUse.VALUE)))
                    .isCloseTo(vocabulary.sum(exact(divergence)), within(TOLERANCE));
        }
    }

    @ParameterizedTest
    @MethodSource("divergencesAndSamplings")
    void shouldHaveTheDivergencesGradientAsExpectedGradient(KlDivergence divergence, KlSampling sampling) {
        for (int seed = 0; seed < 20; seed++) {
            Vocabulary vocabulary = Vocabulary.random(seed);
            KlPlan plan = KlPlan.of(divergence, sampling, KlUse.LOSS);

            assertThat(vocabulary.expectedGradient(plan))
                    .containsExactly(vocabulary.gradient(exact(divergence)), within(TOLERANCE));
            assertThat(vocabulary.expectedValue(plan)).isCloseTo(vocabulary.sum(exact(divergence)), within(TOLERANCE));
        }
    }

    @Test
    void shouldPenaliseRewardsSoThatThePolicyGradientDescendsTheDivergence() {
        for (KlDivergence divergence : KlDivergence.values()) {
            for (int seed = 0; seed < 20; seed++) {
                Vocabulary vocabulary = Vocabulary.random(seed);
                KlResult penalty = vocabulary.evaluate(KlPlan.of(divergence, KlSampling.CURRENT, KlUse.REWARD));

                assertThat(vocabulary.scored(KlSampling.CURRENT, penalty.perToken()))
                        .containsExactly(vocabulary.gradient(exact(divergence)), within(TOLERANCE));
                assertThat(penalty.gradient()).containsOnly(0f);
            }
        }
    }

    /** Every combination the caller may insist on, and what its gradient really is. */
    @Test
    void shouldAcceptExactlyTheEstimatorsWhoseExpectationsAreRight() {
        Vocabulary vocabulary = Vocabulary.random(42);
        int accepted = 0;
        int refused = 0;
        for (KlDivergence divergence : KlDivergence.values()) {
            for (KlSampling sampling : List.of(KlSampling.CURRENT, KlSampling.BEHAVIOR)) {
                for (KlForm form : KlForm.values()) {
                    for (boolean straightThrough : new boolean[] {false, true}) {
                        for (KlWeighting weighting : KlWeighting.values()) {
                            KlEstimator estimator = new KlEstimator(form, straightThrough);
                            boolean right = isRightLoss(vocabulary, divergence, sampling, estimator, weighting);
                            boolean taken = accepts(divergence, sampling, estimator, weighting);
                            // the cap does not bite on this vocabulary, so only the rule knows that it may
                            assertThat(taken)
                                    .as("%s %s %s %s", divergence, sampling, estimator, weighting)
                                    .isEqualTo(right
                                            && !(form == KlForm.K3_CAPPED && !straightThrough)
                                            && !redundant(sampling, weighting));
                            accepted += taken ? 1 : 0;
                            refused += taken ? 0 : 1;
                        }
                    }
                }
            }
        }
        assertThat(accepted).isEqualTo(16);
        assertThat(refused).isEqualTo(104);
    }

    /** Weights of tokens the policy sampled itself are 1 in value, so nothing is wrong with them but the confusion. */
    private static boolean redundant(KlSampling sampling, KlWeighting weighting) {
        return sampling == KlSampling.CURRENT && weighting != KlWeighting.NONE;
    }

    private static boolean accepts(
            KlDivergence divergence, KlSampling sampling, KlEstimator estimator, KlWeighting weighting) {
        try {
            KlPlan.insisting(divergence, sampling, KlUse.LOSS, estimator, weighting);
            return true;
        } catch (KlMisuseException refusal) {
            assertThat(refusal.getMessage()).contains("; use ");
            return false;
        }
    }

    private static boolean isRightLoss(
            Vocabulary vocabulary,
            KlDivergence divergence,
            KlSampling sampling,
            KlEstimator estimator,
            KlWeighting weighting) {
        double[] actual = expectedGradient(vocabulary, sampling, estimator, weighting);
        double[] wanted = vocabulary.gradient(exact(divergence));
        for (int i = 0; i < actual.length; i++) {
            if (Math.abs(actual[i] - wanted[i]) > 1e-4) {
                return false;
            }
        }
        return true;
    }

    private static double[] expectedGradient(
            Vocabulary vocabulary, KlSampling sampling, KlEstimator estimator, KlWeighting weighting) {
        double[] q = vocabulary.current();
        float[] coefficients = new float[q.length];
        for (int y = 0; y < q.length; y++) {
            double d = Math.log(q[y] / vocabulary.reference()[y]);
            double w = q[y] / vocabulary.sampling(sampling)[y];
            coefficients[y] = (float)
                    switch (weighting) {
                        case NONE -> estimator.derivative(d);
                        case DETACHED -> w * estimator.derivative(d);
                        case LIVE -> w * (estimator.value(d) + estimator.derivative(d));
                    };
        }
        return vocabulary.scored(sampling, coefficients);
    }

    @Test
    void shouldSayWhatTheWrongEstimatorsDo() {
        KlEstimator k1 = new KlEstimator(KlForm.K1, false);
        KlEstimator k2 = new KlEstimator(KlForm.K2, false);
        KlEstimator k3 = new KlEstimator(KlForm.K3, false);
        Vocabulary vocabulary = Vocabulary.random(1);

        assertThatThrownBy(() ->
                        KlPlan.insisting(KlDivergence.REVERSE, KlSampling.CURRENT, KlUse.LOSS, k1, KlWeighting.NONE))
                .hasMessageContaining("k1 as a loss has zero gradient")
                .hasMessageContaining("use k3, gradient d");
        assertThat(expectedGradient(vocabulary, KlSampling.CURRENT, k1, KlWeighting.NONE))
                .containsExactly(new double[5], within(1e-6));

        assertThatThrownBy(() ->
                        KlPlan.insisting(KlDivergence.REVERSE, KlSampling.BEHAVIOR, KlUse.LOSS, k2, KlWeighting.LIVE))
                .hasMessageContaining("optimises the f-divergence E[d²/2]");
        assertThat(expectedGradient(vocabulary, KlSampling.BEHAVIOR, k2, KlWeighting.LIVE))
                .containsExactly(
                        vocabulary.gradient((q, p) -> q * 0.5 * Math.pow(Math.log(q / p), 2)), within(TOLERANCE));

        assertThatThrownBy(() ->
                        KlPlan.insisting(KlDivergence.REVERSE, KlSampling.CURRENT, KlUse.LOSS, k3, KlWeighting.NONE))
                .hasMessageContaining("the forward KL");
        assertThat(expectedGradient(vocabulary, KlSampling.CURRENT, k3, KlWeighting.NONE))
                .containsExactly(vocabulary.gradient(FORWARD), within(TOLERANCE));

        assertThatThrownBy(() ->
                        KlPlan.insisting(KlDivergence.REVERSE, KlSampling.CURRENT, KlUse.REWARD, k3, KlWeighting.NONE))
                .hasMessageContaining("minus that of KL(reference‖current)");
        assertThatThrownBy(() ->
                        KlPlan.insisting(KlDivergence.REVERSE, KlSampling.CURRENT, KlUse.VALUE, k2, KlWeighting.NONE))
                .hasMessageContaining("k2 is biased");
        assertThatThrownBy(() ->
                        KlPlan.insisting(KlDivergence.REVERSE, KlSampling.BEHAVIOR, KlUse.VALUE, k3, KlWeighting.NONE))
                .hasMessageContaining("wrong policy");
        assertThatThrownBy(() -> KlPlan.insisting(
                        KlDivergence.REVERSE, KlSampling.BEHAVIOR, KlUse.REWARD, k1, KlWeighting.DETACHED))
                .hasMessageContaining("weigh it twice");
        assertThatThrownBy(() -> KlPlan.of(KlDivergence.REVERSE, KlSampling.REFERENCE, KlUse.REWARD))
                .hasMessageContaining("works through the policy gradient");
    }

    @Test
    void shouldEvaluateRaggedBatchesWithoutReadingContext() {
        TokenBatch batch = new TokenBatch(new int[] {0, 2, 3}, new byte[] {1, 0, 1});
        float[] current = {-1, Float.NaN, -2};
        float[] reference = {-2, Float.NaN, -1};
        KlPlan plan = KlPlan.of(KlDivergence.REVERSE, KlSampling.CURRENT, KlUse.LOSS);

        KlResult result =
                plan.evaluate(new LossAggregation.TokenMean(), batch, current, reference, current, GlobalBatch.WHOLE);

        // d = 1 and −1: k3 = e^−1 and e − 2
        assertThat(result.value()).isCloseTo((Math.exp(-1) + Math.E - 2) / 2, within(1e-9));
        assertThat(result.gradient()).containsExactly(0.5f, 0, -0.5f);
        assertThatThrownBy(() -> plan.evaluate(
                        new LossAggregation.TokenMean(),
                        batch,
                        current,
                        new float[] {-1, 0, Float.NaN},
                        current,
                        GlobalBatch.WHOLE))
                .isInstanceOf(NonFiniteLogProbException.class)
                .hasMessageContaining("sequence=1, token=0");
    }

    @Test
    void shouldAddToAnObjective() {
        TokenBatch batch = new TokenBatch(new int[] {0, 1}, new byte[] {1});
        ObjectiveResult objective = new Reinforce()
                .evaluate(
                        ObjectiveInput.of(batch, new float[] {-1}, new float[] {2}),
                        UpdateFacts.of(new LossAggregation.TokenMean()));
        float[] current = {-1};
        KlResult kl = KlPlan.of(KlDivergence.REVERSE, KlSampling.CURRENT, KlUse.LOSS)
                .evaluate(
                        new LossAggregation.TokenMean(),
                        batch,
                        current,
                        new float[] {-1.5f},
                        current,
                        GlobalBatch.WHOLE);

        ObjectiveResult sum = kl.addedTo(objective, 0.1);

        assertThat(sum.loss()).isCloseTo(2 + 0.1 * (Math.exp(-0.5) - 0.5), within(1e-9));
        assertThat(sum.gradient()).containsExactly(new float[] {-2 + 0.05f}, within(1e-7f));
    }
}
