package dev.millrace.corrections.objective;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.corrections.RandomBatches;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;
import org.junit.jupiter.api.Test;

class RatioVarianceTest {
    private static final float LOG2 = (float) Math.log(2);
    private final TokenBatch batch = new TokenBatch(new int[] {0, 2, 3}, new byte[] {1, 0, 1});
    private final LogRatio ratio = LogRatio.trustRegion(new float[] {LOG2, Float.NaN, -LOG2}, new float[3]);

    @Test
    void shouldPenaliseTheSurrogate() {
        double[] gradients = new double[3];
        double value = new RatioVariancePenalty(0.5).compute(batch, ratio, new float[] {1f, 9f, -2f}, gradients);

        // 2 * 1 - 0.5 * 1 = 1.5 and 0.5 * -2 - 0.5 * 0.25 = -1.125; gradients 2 (1 - 1) and 0.5 (-2 + 0.5)
        assertThat(value).isCloseTo((1.5 - 1.125) / 2, within(1e-6));
        assertThat(gradients[0]).isCloseTo(0, within(1e-6));
        assertThat(gradients[1]).isZero();
        assertThat(gradients[2]).isCloseTo(-0.75, within(1e-6));
    }

    @Test
    void shouldTurnWhereTheRangeOfTheTokenEnds() {
        RatioVariancePenalty penalty = new RatioVariancePenalty(2);

        assertThat(penalty.turningRatio(1)).isEqualTo(1.25);
        assertThat(penalty.turningRatio(-1)).isEqualTo(0.75);
        assertThat(penalty.turningRatio(-9)).isZero();
        assertThat(penalty.gradient(Math.log(1.2), 1)).isPositive();
        assertThat(penalty.gradient(Math.log(1.3), 1)).isNegative();
        assertThat(penalty.gradient(Math.log(0.7), -1)).isPositive();
    }

    @Test
    void shouldHaveTheGradientOfItsValue() {
        RandomBatches random = new RandomBatches(2);
        RatioVariancePenalty penalty = new RatioVariancePenalty(0.7);
        for (int round = 0; round < 20; round++) {
            TokenBatch ragged = random.next();
            float[] sampler = random.logProbs(ragged);
            LogRatio moved = LogRatio.trustRegion(random.near(ragged, sampler, 0.5), sampler);
            for (int t = 0; t < ragged.tokenCount(); t++) {
                if (ragged.isTrained(t)) {
                    double step = 1e-5;
                    double slope = (penalty.value(moved.at(t) + step, -1.5) - penalty.value(moved.at(t) - step, -1.5))
                            / (2 * step);
                    assertThat(penalty.gradient(moved.at(t), -1.5))
                            .isCloseTo(slope, within(1e-6 * (1 + Math.abs(slope))));
                }
            }
        }
        assertThat(penalty.gradient(25, 1)).isZero();
    }

    @Test
    void shouldRaiseTheMultiplierAboveBudgetAndLowerItBelow() {
        VarianceMultiplier multiplier = new VarianceMultiplier(1, 0.1, 2, 0.01, 3);

        assertThat(multiplier.after(0.3).multiplier()).isCloseTo(1.4, within(1e-12));
        assertThat(multiplier.after(0.0).multiplier()).isCloseTo(0.8, within(1e-12));
        assertThat(multiplier.after(100).multiplier()).isEqualTo(3);
        assertThat(multiplier.after(0.1).penalty()).isEqualTo(new RatioVariancePenalty(1));
    }

    @Test
    void shouldRefuseWhatHasNoAnswer() {
        assertThatThrownBy(() -> new RatioVariancePenalty(0)).hasMessageContaining("multiplier=0.0");
        assertThatThrownBy(() -> new VarianceMultiplier(1, 0, 1, 0.1, 2)).hasMessageContaining("budget=0.0");
        assertThatThrownBy(() -> new VarianceMultiplier(1, 1, 1, 0, 2)).hasMessageContaining("smallest=0.0");
        assertThatThrownBy(() -> new VarianceMultiplier(1, 1, 1, 0.1, 2).after(Double.NaN))
                .hasMessageContaining("NaN");
    }
}
