package dev.millrace.cli.live;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;

class StatusTextTest {
    private static final RunStatus RUNNING = new RunStatus("inc-1", 72.9, "", 0.9, 0.5, 57, 0, 57, List.of(0.1, 0.5, 0.99),
        0.45, 1.25, 3, 0.981, new TreeMap<>(Map.of("generator", 12345.0, "learner", 9.0)),
        new TreeMap<>(Map.of("generator", 0.14)), new TreeMap<>(Map.of("learner", 1L)), Map.of(), Map.of("duplicate", 8L));

    @Test
    void shouldSayEverythingInOneLine() {
        assertThat(StatusText.line(RUNNING)).isEqualTo("00:01:12  step 57  version 57  reward 0.990 (0.450 of 0.90)  "
            + "staleness 1.25/3  ESS 0.981  tokens/s generator 12.3k, learner 9  behind learner 1  lost duplicate 8");
    }

    @Test
    void shouldNeverExceedTheWidth() {
        for (int width = 1; width < 120; width++) {
            int limit = width;
            assertThat(StatusText.panel(RUNNING, width)).allSatisfy(line -> assertThat(line.length()).isLessThanOrEqualTo(limit));
        }
    }

    @Test
    void shouldDrawTheGoalAndTheRewards() {
        assertThat(StatusText.panel(RUNNING, 40))
            .anySatisfy(line -> assertThat(line).startsWith("goal").contains("█·").endsWith("0.45 of 0.90"))
            .anySatisfy(line -> assertThat(line).startsWith("reward").endsWith("▁▅█"));
    }

    @Test
    void shouldAverageWhatDoesNotFit() {
        assertThat(StatusText.spark(List.of(0.0, 0.0, 1.0, 1.0), 2)).isEqualTo("▁█");
    }
}
