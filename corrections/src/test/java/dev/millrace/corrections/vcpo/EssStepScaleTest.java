package dev.millrace.corrections.vcpo;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.corrections.vcpo.EssStepScale.Rule;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class EssStepScaleTest {
    @Test
    void shouldDampByTheRatioRelativeToItsBase() {
        assertThat(new EssStepScale(Rule.LINEAR, 0.5).scale(0.125)).isEqualTo(0.25);
        assertThat(new EssStepScale(Rule.SQRT, 0.5).scale(0.125)).isEqualTo(0.5);
    }

    @Test
    void shouldNeverAmplify() {
        assertThat(new EssStepScale(Rule.LINEAR, 0.5).scale(0.75)).isEqualTo(1.0);
        assertThat(new EssStepScale(Rule.SQRT, 1.0).scale(1.0)).isEqualTo(1.0);
    }

    @ParameterizedTest
    @ValueSource(doubles = {Double.NaN, 0, -0.5, 1.5, Double.POSITIVE_INFINITY})
    void shouldRefuseRatiosThatWouldLeaveTheStepUnscaled(double ratio) {
        assertThatThrownBy(() -> new EssStepScale(Rule.SQRT, 0.5).scale(ratio))
                .hasMessageContaining("essRatio=" + ratio);
    }

    @ParameterizedTest
    @ValueSource(doubles = {Double.NaN, 0, -0.5, 1.5})
    void shouldRefuseBasesOutOfRange(double base) {
        assertThatThrownBy(() -> new EssStepScale(Rule.SQRT, base)).hasMessageContaining("baseRatio=" + base);
    }

    @Test
    void shouldLeaveTheStepUnscaledOnNaNOnlyUnderTheReferencesName() {
        assertThat(EssStepScale.referenceScale(Rule.SQRT, 0.55, Double.NaN)).isEqualTo(1.0);
        assertThat(EssStepScale.referenceScale(Rule.LINEAR, 0.0, 0.0)).isEqualTo(0.0);
        assertThat(EssStepScale.referenceScale(Rule.LINEAR, 0.5, 0.25)).isEqualTo(0.5);
    }
}
