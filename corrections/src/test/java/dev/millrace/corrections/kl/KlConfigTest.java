package dev.millrace.corrections.kl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.objective.GlobalBatch;
import dev.millrace.corrections.objective.LossAggregation;
import org.junit.jupiter.api.Test;

class KlConfigTest {
    private static KlConfig.InLoss inLoss(KlDivergence divergence, String klLossType, KlWeighting weighting) {
        return new KlConfig.InLoss(
                divergence, klLossType, weighting, CoefficientConfig.Fixed.defaults(), ReferenceConfig.defaults());
    }

    @Test
    void shouldWeighTheEstimatorOfLeastVarianceByItself() {
        assertThat(KlConfig.InLoss.defaults().plan().formula()).isEqualTo("w k3, gradient w d");
        assertThatThrownBy(() -> inLoss(KlDivergence.REVERSE, "", KlWeighting.LIVE))
                .hasMessageContaining("weighting must be detached where kl_loss_type is empty")
                .hasMessageContaining("live");
    }

    @Test
    void shouldTakeVerlsEstimatorsWhereTheyOptimiseTheDivergence() {
        assertThat(inLoss(KlDivergence.REVERSE, "k2", KlWeighting.DETACHED)
                        .plan()
                        .formula())
                .isEqualTo("sg[w] K2");
        assertThat(inLoss(KlDivergence.REVERSE, "low_var_kl+", KlWeighting.DETACHED)
                        .plan()
                        .formula())
                .isEqualTo("sg[w] K3_CAPPED+");
        assertThat(inLoss(KlDivergence.REVERSE, "k3_uncapped", KlWeighting.LIVE)
                        .plan()
                        .formula())
                .isEqualTo("w K3");
        assertThat(inLoss(KlDivergence.FORWARD, "k3_uncapped", KlWeighting.DETACHED)
                        .plan()
                        .formula())
                .isEqualTo("sg[w] K3");
    }

    @Test
    void shouldTakeVerlsNamesOfK3ForTheUncutOne() {
        assertThat(inLoss(KlDivergence.REVERSE, "low_var_kl", KlWeighting.LIVE)
                        .plan()
                        .formula())
                .isEqualTo("w K3");
        assertThat(inLoss(KlDivergence.FORWARD, "k3", KlWeighting.DETACHED)
                        .plan()
                        .formula())
                .isEqualTo("sg[w] K3");
        // d = −5, w = 1/2: k3 = e^5 − 1 − 5 is far above the cut, and w (k3 + 1 − r) = w d
        float[] current = {-6};
        KlResult result = inLoss(KlDivergence.REVERSE, "low_var_kl", KlWeighting.LIVE)
                .plan()
                .evaluate(
                        new LossAggregation.TokenSum(),
                        new TokenBatch(new int[] {0, 1}, new byte[] {1}),
                        current,
                        new float[] {-1},
                        new float[] {(float) (-6 + Math.log(2))},
                        GlobalBatch.WHOLE);
        assertThat(result.value()).isCloseTo((Math.exp(5) - 6) / 2, within(1e-4));
        assertThat(result.gradient()[0]).isCloseTo(-2.5f, within(1e-4f));
    }

    @Test
    void shouldRefuseEstimatorsThatOptimiseSomethingElse() {
        assertThatThrownBy(() -> inLoss(KlDivergence.REVERSE, "k1", KlWeighting.DETACHED))
                .hasMessageContaining("kl_loss_type=k1: k1 as a loss has zero gradient")
                .hasMessageContaining("; use w k3, gradient w d");
        assertThatThrownBy(() -> inLoss(KlDivergence.REVERSE, "low_var_kl", KlWeighting.DETACHED))
                .hasMessageContaining("the gradient of k3 is that of KL(reference‖current), the forward KL")
                .hasMessageContaining("use w k3, gradient w d, which an empty kl_loss_type with weighting=detached is");
        assertThatThrownBy(() -> inLoss(KlDivergence.REVERSE, "k2", KlWeighting.NONE))
                .hasMessageContaining("without a weight the expectation is over the wrong policy");
        assertThatThrownBy(() -> inLoss(KlDivergence.REVERSE, "k9", KlWeighting.DETACHED))
                .hasMessageContaining("unknown KL estimator: k9; known: kl, k1");
    }
}
