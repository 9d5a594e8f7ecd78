package dev.millrace.corrections.filter;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.corrections.NonFiniteLogProbException;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.filter.ForcedTokenMask.Summary;
import org.junit.jupiter.api.Test;

class ForcedTokenMaskTest {
    private final TokenBatch batch = new TokenBatch(new int[] {0, 3, 6}, new byte[] {1, 1, 1, 1, 0, 1});
    private final byte[] mask = new byte[6];

    @Test
    void shouldMaskPlaceholdersAndNearCertainTokens() {
        Summary summary =
                ForcedTokenMask.defaults().compute(batch, new float[] {0f, -0.009f, -0.01f, -2f, 0f, -0f}, mask);

        assertThat(mask).containsExactly(0, 0, 1, 1, 0, 0);
        assertThat(summary).isEqualTo(new Summary(5, 2, 1));
        assertThat(summary.promptFraction()).isEqualTo(0.4);
        assertThat(summary.forcedFraction()).isCloseTo(0.2, within(1e-15));
    }

    @Test
    void shouldMaskPlaceholdersOnlyAtThresholdZero() {
        new ForcedTokenMask(0).compute(batch, new float[] {0f, -1e-9f, -1f, -1f, 0f, -1f}, mask);

        assertThat(mask).containsExactly(0, 1, 1, 1, 0, 1);
    }

    @Test
    void shouldReportZeroFractionsWithoutTrainedTokens() {
        Summary summary = ForcedTokenMask.defaults()
                .compute(new TokenBatch(new int[] {0, 1}, new byte[1]), new float[] {Float.NaN}, new byte[1]);

        assertThat(summary).isEqualTo(new Summary(0, 0, 0));
        assertThat(summary.forcedFraction()).isZero();
    }

    @Test
    void shouldRefuseWhatIsNoLogProb() {
        assertThatThrownBy(
                        () -> ForcedTokenMask.defaults().compute(batch, new float[] {-1f, -1f, -1f, 2f, 0f, -1f}, mask))
                .hasMessageContaining("sequence=1, token=0, value=2.0");
        assertThatThrownBy(() ->
                        ForcedTokenMask.defaults().compute(batch, new float[] {-1f, Float.NaN, 0f, 0f, 0f, 0f}, mask))
                .isInstanceOf(NonFiniteLogProbException.class);
        assertThatThrownBy(() -> new ForcedTokenMask(0.1))
                .hasMessageContaining("forced_above is a log-prob and must be finite and at most 0: 0.1");
    }
}
