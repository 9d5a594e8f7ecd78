package dev.millrace.conformance;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.corrections.vcpo.EffectiveSampleSize;
import dev.millrace.corrections.vcpo.Ess.Rule;
import dev.millrace.corrections.vcpo.WeightedAverage;
import org.junit.jupiter.api.Test;

/** What VCPO's code does and the library does not. */
class VcpoReferenceTest {

    @Test
    void shouldAddToSumsAndLetWeightsOverflow() {
        assertThat(ReferenceEffectiveSampleSize.of(new double[] {1e-5, 1e-5}).ratio())
                .isCloseTo(4e-10 / (2e-10 + 1e-8) / 2, within(1e-12));
        assertThat(ReferenceEffectiveSampleSize.of(new double[] {1, Double.POSITIVE_INFINITY})
                        .ratio())
                .isNaN();
        assertThat(ReferenceEffectiveSampleSize.of(new double[0]).ratio()).isZero();
        assertThat(EffectiveSampleSize.ofRaw(new double[] {Math.log(1e-5), Math.log(1e-5)})
                        .ratio())
                .isEqualTo(1.0);
        assertThat(new ReferenceOptimalBaseline(WeightedAverage.MEAN, false)
                        .of(
                                new double[] {1, 0},
                                new double[] {1, 2},
                                new double[] {1, Double.POSITIVE_INFINITY},
                                new int[] {1, 1}))
                .isNaN();
    }

    @Test
    void shouldLeaveTheStepUnscaledOnNaN() {
        assertThat(ReferenceEffectiveSampleSize.stepScale(Rule.SQRT, 0.55, Double.NaN))
                .isEqualTo(1.0);
        assertThat(ReferenceEffectiveSampleSize.stepScale(Rule.LINEAR, 0.0, 0.0))
                .isEqualTo(0.0);
        assertThat(ReferenceEffectiveSampleSize.stepScale(Rule.LINEAR, 0.5, 0.25))
                .isEqualTo(0.5);
    }

    @Test
    void shouldRefuseToDivideByNoTokens() {
        assertThatThrownBy(() -> new ReferenceOptimalBaseline(WeightedAverage.MEAN, true)
                        .of(new double[1], new double[1], new double[1], new int[1]))
                .hasMessageContaining("index=0");
    }
}
