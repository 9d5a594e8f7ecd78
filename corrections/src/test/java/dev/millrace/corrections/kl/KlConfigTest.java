package dev.millrace.corrections.kl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

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
    void shouldRefuseEstimatorsThatOptimiseSomethingElse() {
        assertThatThrownBy(() -> inLoss(KlDivergence.REVERSE, "k1", KlWeighting.DETACHED))
                .hasMessageContaining("kl_loss_type=k1: k1 as a loss has zero gradient")
                .hasMessageContaining("; use w k3, gradient w d");
        assertThatThrownBy(() -> inLoss(KlDivergence.REVERSE, "low_var_kl", KlWeighting.DETACHED))
                .hasMessageContaining("k3 cut off at 10 has no gradient where the divergence is largest");
        assertThatThrownBy(() -> inLoss(KlDivergence.REVERSE, "k2", KlWeighting.NONE))
                .hasMessageContaining("without a weight the expectation is over the wrong policy");
        assertThatThrownBy(() -> inLoss(KlDivergence.REVERSE, "k9", KlWeighting.DETACHED))
                .hasMessageContaining("unknown KL estimator: k9; known: kl, k1");
    }
}
