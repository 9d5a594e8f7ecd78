package dev.millrace.corrections.objective;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.stage.ControlState;
import java.util.Map;
import org.junit.jupiter.api.Test;

class R2vpoTest {
    private static double gradient(double ratio, float advantage) {
        TokenBatch batch = new TokenBatch(new int[] {0, 1}, new byte[] {1});
        ObjectiveInput input = ObjectiveInput.of(batch, new float[] {(float) Math.log(ratio)}, new float[] {advantage})
                .withProximal(new float[1]);
        return new R2vpo(Anchor.PROXIMAL, 2, 0.1, 0, 0.01, 3)
                .evaluate(input, UpdateFacts.of(new LossAggregation.TokenMean()))
                .gradient()[0];
    }

    @Test
    void shouldTurnWhereTheRangeOfTheTokenEnds() { // 1 + A / (2 lambda)
        assertThat(gradient(1.2, 1)).isNegative();
        assertThat(gradient(1.3, 1)).isPositive();
        assertThat(gradient(0.7, -1)).isNegative();
    }

    @Test
    void shouldRaiseTheMultiplierAboveBudgetAndLowerItBelow() {
        assertThat(multiplierAfter(0.3)).isCloseTo(1.4, within(1e-12));
        assertThat(multiplierAfter(0.0)).isCloseTo(0.8, within(1e-12));
        assertThat(multiplierAfter(100)).isEqualTo(3);
        assertThatThrownBy(() -> multiplierAfter(Double.NaN)).hasMessageContaining("variance=NaN");
    }

    private static double multiplierAfter(double variance) {
        ObjectiveResult result = new ObjectiveResult(
                0, new float[0], new byte[0], new ActedOn(0, 0), Map.of(R2vpo.RATIO_VARIANCE, variance));
        return new R2vpo(Anchor.PROXIMAL, 1, 0.1, 2, 0.01, 3)
                .remembered(ControlState.initial(), result)
                .get(R2vpo.MULTIPLIER)
                .orElseThrow();
    }
}
