package dev.millrace.corrections.diagnostics;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.corrections.TokenBatch;
import java.util.OptionalDouble;
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
    void shouldSplitPowerIntoSignalAndNoise() {
        // e = 0.5, 0.8, 0.4; powers 4 * 0.5 + 1 * 0.8 = 2.8 and 4 * 0.4 = 1.6
        GradientPower power = GradientPower.of(BATCH, LOG_PROBS, SQUARES, ADVANTAGES, WEIGHTS, OptionalDouble.of(0.2));

        assertThat(power.sequences()).isEqualTo(2);
        assertThat(power.totalPower()).isCloseTo(2.2, within(1e-6));
        assertThat(power.noise().orElseThrow()).isCloseTo(2.2 - 0.04, within(1e-6));
        assertThat(power.meanSquaredAdvantage()).isCloseTo(3, within(1e-6));
        assertThat(power.meanScoreNorm()).isCloseTo(1.7 / 3, within(1e-6));
    }

    @Test
    void shouldLeaveTheNoiseOpenWithoutAGradientNorm() {
        assertThat(GradientPower.of(BATCH, LOG_PROBS, SQUARES, ADVANTAGES, WEIGHTS, OptionalDouble.empty())
                        .noise())
                .isEmpty();
    }

    @Test
    void shouldRefuseNonFiniteInputAndNothing() {
        assertThatThrownBy(() -> GradientPower.of(
                        BATCH,
                        LOG_PROBS,
                        SQUARES,
                        new float[] {0, Float.NaN, 0, 0, 0},
                        WEIGHTS,
                        OptionalDouble.empty()))
                .hasMessageContaining("advantages")
                .hasMessageContaining("token=1");
        assertThatThrownBy(() -> GradientPower.of(
                        new TokenBatch(new int[] {0, 1}, new byte[1]),
                        new float[1],
                        new float[1],
                        new float[1],
                        new float[1],
                        OptionalDouble.empty()))
                .hasMessageContaining("at least one trained token");
    }
}
