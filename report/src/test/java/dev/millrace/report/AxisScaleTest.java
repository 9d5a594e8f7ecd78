package dev.millrace.report;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.report.Picture.AxisScale;
import java.util.List;
import org.junit.jupiter.api.Test;

class AxisScaleTest {
    private static final Axis FREE = Axis.of("x");

    @Test
    void shouldBeginAndEndAtRoundValues() {
        assertThat(AxisScale.ofValues(List.of(0.4906, 0.9812), FREE)).isEqualTo(new AxisScale(0.4, 1.0));
        assertThat(AxisScale.ofValues(List.of(12.0, 6400.0), FREE)).isEqualTo(new AxisScale(0, 8000));
        assertThat(AxisScale.ofValues(List.of(0.2, 0.93), Axis.share("x"))).isEqualTo(new AxisScale(0, 1));
    }

    @Test
    void shouldShowOneDotInTheMiddleOfARoundAxis() {
        AxisScale one = AxisScale.ofValues(List.of(100.28372002192903), FREE);
        assertThat(one.from()).isLessThan(100);
        assertThat(one.to()).isGreaterThan(101);
        assertThat(one.label(one.from())).hasSizeLessThanOrEqualTo(4);
        assertThat(AxisScale.ofValues(List.of(0.0), FREE).to()).isCloseTo(0.6, within(1e-9));
        assertThat(AxisScale.ofPlaces(List.of(100.0), FREE)).isEqualTo(new AxisScale(99.5, 100.5));
    }

    @Test
    void shouldNotMakeASmallDifferenceLookLarge() {
        AxisScale scale = AxisScale.ofValues(List.of(148.4, 149.2), FREE);
        assertThat(scale.to() - scale.from()).isGreaterThan(14);
    }

    @Test
    void shouldHaveTwoLabelsAtLeastOnALogarithmicAxis() {
        Axis log = FREE.logarithmic();
        assertThat(AxisScale.ofValues(List.of(12.0, 80.0), log)).isEqualTo(new AxisScale(10, 100));
        assertThat(AxisScale.ofValues(List.of(100.0), log)).isEqualTo(new AxisScale(100, 1000));
    }

    @Test
    void shouldWriteTicksWithTheDigitsThatTheyNeed() {
        AxisScale scale = new AxisScale(0, 16_000);
        assertThat(List.of(scale.label(0), scale.label(12_800), scale.label(8000), scale.label(1e-15)))
                .containsExactly("0", "12.8k", "8000", "0");
        assertThat(new AxisScale(0, 1).label(0.30000000000000004)).isEqualTo("0.3");
        assertThat(new AxisScale(0, 3e6).label(2_500_000)).isEqualTo("2.5M");
        assertThat(new AxisScale(-150, 150).label(-100)).isEqualTo("-100");
    }
}
