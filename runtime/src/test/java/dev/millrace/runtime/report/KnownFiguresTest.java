package dev.millrace.runtime.report;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.learner.step.StepMetric;
import java.util.Arrays;
import java.util.Map;
import org.junit.jupiter.api.Test;

class KnownFiguresTest {
    @Test
    void shouldNameEachFigureOnceAndSayWhatItMeans() {
        assertThat(KnownFigures.all())
                .extracting(StepFigure::key)
                .doesNotHaveDuplicates()
                .containsAll(
                        Arrays.stream(StepMetric.values()).map(StepMetric::key).toList());
        assertThat(KnownFigures.all())
                .allSatisfy(
                        figure -> assertThat(figure.meaning()).as(figure.key()).hasSizeGreaterThan(5));
    }

    @Test
    void shouldGiveVerlsNamesToFiguresThatThereAre() {
        assertThat(VerlFigures.names()).hasSizeGreaterThan(10);
        assertThat(VerlFigures.names().values()).doesNotHaveDuplicates();
        assertThat(VerlFigures.names().keySet())
                .allSatisfy(key -> assertThat(KnownFigures.find(key)).as(key).isPresent());
    }

    @Test
    void shouldSayWhatFollowsFromTheTimesOfAStep() {
        StepRow step = StepRows.of(3, Map.of("seconds_idle", 0.5));

        assertThat(number("seconds", step)).isEqualTo(1.5);
        assertThat(number("idle_ratio", step)).isEqualTo(0.25);
        assertThat(number("tokens_per_second", step)).isCloseTo(50, within(1e-9));
        assertThat(number("starved", step)).isZero();
        assertThat(number("starved", StepRows.starved(3))).isEqualTo(1);
        for (String unknown : new String[] {"idle_ratio", "tokens_per_second", "entropy", "weights_sha256"}) {
            assertThat(number(unknown, StepRows.of(3, Map.of()))).as(unknown).isNaN();
        }
    }

    private static double number(String key, StepRow step) {
        return KnownFigures.find(key).orElseThrow().number(step);
    }
}
