package dev.millrace.corrections.vcpo;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.corrections.vcpo.Ess.Rule;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class EssStepScaleTest {
    private static Ess ess(Rule rule, double baseRatio) {
        return new Ess(rule, Ess.Weights.RAW, baseRatio);
    }

    @Test
    void shouldDampByTheRatioRelativeToItsBase() {
        assertThat(ess(Rule.LINEAR, 0.5).scale(0.125)).isEqualTo(0.25);
        assertThat(ess(Rule.SQRT, 0.5).scale(0.125)).isEqualTo(0.5);
    }

    @Test
    void shouldNeverAmplify() {
        assertThat(ess(Rule.LINEAR, 0.5).scale(0.75)).isEqualTo(1.0);
        assertThat(ess(Rule.SQRT, 1.0).scale(1.0)).isEqualTo(1.0);
    }

    @ParameterizedTest
    @ValueSource(doubles = {Double.NaN, 0, -0.5, 1.5, Double.POSITIVE_INFINITY})
    void shouldRefuseRatiosThatWouldLeaveTheStepUnscaled(double ratio) {
        assertThatThrownBy(() -> ess(Rule.SQRT, 0.5).scale(ratio)).hasMessageContaining("essRatio=" + ratio);
    }

    @ParameterizedTest
    @ValueSource(doubles = {Double.NaN, 0, -0.5, 1.5})
    void shouldRefuseBasesOutOfRange(double base) {
        assertThatThrownBy(() -> ess(Rule.SQRT, base)).hasMessageContaining("base_ratio must be in (0, 1]: " + base);
    }
}
