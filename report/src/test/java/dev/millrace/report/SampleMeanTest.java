package dev.millrace.report;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import org.junit.jupiter.api.Test;

class SampleMeanTest {
    @Test
    void shouldGiveStudentsIntervalAroundAMean() {
        SampleMean three = SampleMean.of(1, 2, 3); // standard error 1/sqrt(3), two degrees of freedom

        assertThat(three.mean()).isEqualTo(2);
        assertThat(three.high()).isCloseTo(2 + 4.303 / Math.sqrt(3), within(1e-12));
        assertThat(three.shown("%.1f")).isEqualTo("2.0 (-0.5 to 4.5)");
        assertThat(three.excludes(4.4)).isFalse();
        assertThat(three.excludes(4.5)).isTrue();
    }

    @Test
    void shouldHaveNoIntervalOfOneValueAndNoMeanOfNone() {
        assertThat(SampleMean.of(0.25, Double.NaN).shown("%.2f")).isEqualTo("0.25");
        assertThat(SampleMean.of(0.25).excludes(7)).isFalse();
        assertThat(SampleMean.of().mean()).isNaN();
    }
}
