package dev.millrace.corrections.staleness;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.corrections.TokenBatch;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;

class StepStalenessTest {
    /** Two sequences of three tokens; the first was divided between version 2 and 4. */
    private static final TokenBatch OWN =
            new TokenBatch(new int[] {0, 3, 6}, new byte[] {1, 1, 1, 1, 1, 0}, new int[] {0, 0});

    private static final BatchVersions VERSIONS = new BatchVersions(
            OWN,
            List.of(List.of(new VersionSpan(2, 0, 1), new VersionSpan(4, 1, 3)), List.of(new VersionSpan(5, 0, 3))));
    private static final long[] SCORED_AT = {4, 6};

    @Test
    void shouldCountFromTheStepAndDivideItWhereTheSequenceWasScored() {
        StepStaleness all = StepStaleness.of(OWN, VERSIONS, SCORED_AT, 7).orElseThrow();

        // tokens: 7-2, 7-4, 7-4 of the first, 7-5, 7-5 of the second; in queue 7-4 three times, 7-6 twice
        assertThat(all.tokens()).isEqualTo(5);
        assertThat(all.mean()).isCloseTo((5 + 3 + 3 + 2 + 2) / 5.0, within(1e-12));
        assertThat(all.max()).isEqualTo(5);
        assertThat(all.inQueueMean()).isCloseTo((3 + 3 + 3 + 1 + 1) / 5.0, within(1e-12));
        assertThat(all.inFlightMean()).isCloseTo((2 + 0 + 0 + 1 + 1) / 5.0, within(1e-12));
    }

    @Test
    void shouldLeaveOutWhatIsNotTrainedOn() {
        StepStaleness left = StepStaleness.of(OWN.withMask(new byte[] {0, 1, 0, 1, 0, 0}), VERSIONS, SCORED_AT, 7)
                .orElseThrow();

        assertThat(left).isEqualTo(new StepStaleness(2, 2.5, 3, 0.5, 2, new TreeMap<>(Map.of(2L, 1L, 3L, 1L))));
    }

    @Test
    void shouldSayWhatAShareOfTheTokensDoesNotExceed() {
        StepStaleness all = StepStaleness.of(OWN, VERSIONS, SCORED_AT, 7).orElseThrow();

        // 2 and 2, 3 and 3, 5
        assertThat(all.tokensAt()).containsExactly(Map.entry(2L, 2L), Map.entry(3L, 2L), Map.entry(5L, 1L));
        assertThat(all.quantile(0.4)).isEqualTo(2);
        assertThat(all.quantile(0.5)).isEqualTo(3);
        assertThat(all.quantile(0.8)).isEqualTo(3);
        assertThat(all.quantile(0.81)).isEqualTo(5);
        assertThat(all.quantile(1)).isEqualTo(5);
        for (double none : new double[] {0, -1, 1.01, Double.NaN}) {
            assertThatThrownBy(() -> all.quantile(none)).hasMessageContaining("at most 1");
        }
    }

    @Test
    void shouldBeAbsentWithoutAToken() {
        assertThat(StepStaleness.of(OWN.withMask(new byte[6]), VERSIONS, SCORED_AT, 7))
                .isEmpty();
    }

    @Test
    void shouldRefuseATokenThatIsNewerThanTheStep() {
        assertThatThrownBy(() -> StepStaleness.of(OWN, VERSIONS, SCORED_AT, 4))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("newer");
    }
}
