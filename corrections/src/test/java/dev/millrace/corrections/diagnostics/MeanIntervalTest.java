package dev.millrace.corrections.diagnostics;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class MeanIntervalTest {

    @Test
    void shouldBeAsWideAsValuesVary() {
        // mean 2.5; squared deviations 2.25 + 0.25 + 0.25 + 2.25 = 5, s = sqrt(5/3), s/sqrt(4) = 0.645497
        MeanInterval interval = MeanInterval.of(new double[] {1, 2, 3, 4});

        assertThat(interval.mean()).isEqualTo(2.5);
        assertThat(interval.high() - 2.5).isCloseTo(3.18245 * 0.645497, within(0.003));
        assertThat(2.5 - interval.low()).isCloseTo(interval.high() - 2.5, within(1e-12));
    }

    @Test
    void shouldHaveNoWidthToTellWhereNothingVaries() {
        assertThat(MeanInterval.of(new double[] {1, 1, 1}).isKnown()).isFalse();
        assertThat(MeanInterval.of(new double[] {0.1, 0.1, 0.1}).isKnown()).isFalse();
        assertThat(MeanInterval.of(new double[] {0.25})).isEqualTo(new MeanInterval(0.25, Double.NaN, Double.NaN));
        assertThat(MeanInterval.of(new double[0]).mean()).isNaN();
    }

    @Test
    void shouldStayAmongShares() {
        MeanInterval share = MeanInterval.of(new double[] {0, 1}).ofShare();

        assertThat(share).isEqualTo(new MeanInterval(0.5, 0, 1));
    }

    /** As tables have them. */
    @ParameterizedTest
    @CsvSource({
        "1, 12.7062, 0.0001", "2, 4.30265, 0.00001", "3, 3.18245, 0.006", "4, 2.77645, 0.002",
        "6, 2.44691, 0.0003", "10, 2.22814, 0.0001", "63, 1.99834, 0.00001", "1000, 1.96234, 0.00001"
    })
    void shouldKnowStudentsDistribution(int degrees, double expected, double tolerance) {
        assertThat(MeanInterval.student(degrees)).isCloseTo(expected, within(tolerance));
    }
}
