package dev.millrace.corrections.diagnostics;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.corrections.TokenBatch;
import org.junit.jupiter.api.Test;

class GradientPowerTest {
    private static final TokenBatch BATCH = new TokenBatch(new int[] {0, 2, 4, 5}, new byte[] {1, 1, 1, 0, 0});
    private static final float[] LOG_PROBS = {
        (float) Math.log(0.5), (float) Math.log(0.25), (float) Math.log(0.5), Float.NaN, 0
    };
    private static final float[] SQUARES = {0.5f, 0.3f, 0.4f, Float.NaN, 0};
    private static final float[] ADVANTAGES = {2f, 2f, -1f, Float.NaN, 0};
    private static final float[] WEIGHTS = {1f, 0.5f, 2f, 0, 0};

    @Test
    void shouldAverageTheSquaredScoresOfSequences() {
        // e = 0.5, 0.8, 0.4; powers 4 * 0.5 + 1 * 0.8 = 2.8 and 4 * 0.4 = 1.6
        assertThat(GradientPower.of(BATCH, LOG_PROBS, SQUARES, ADVANTAGES, WEIGHTS))
                .isCloseTo(2.2, within(1e-6));
    }

    @Test
    void shouldRefuseNonFiniteInputAndNothing() {
        assertThatThrownBy(
                        () -> GradientPower.of(BATCH, LOG_PROBS, SQUARES, new float[] {0, Float.NaN, 0, 0, 0}, WEIGHTS))
                .hasMessageContaining("advantages")
                .hasMessageContaining("token=1");
        assertThatThrownBy(() -> GradientPower.of(
                        new TokenBatch(new int[] {0, 1}, new byte[1]),
                        new float[1],
                        new float[1],
                        new float[1],
                        new float[1]))
                .hasMessageContaining("at least one trained token");
    }
}
