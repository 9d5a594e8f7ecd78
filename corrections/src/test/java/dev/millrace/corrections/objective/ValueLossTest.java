package dev.millrace.corrections.objective;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.corrections.NonFiniteLogProbException;
import dev.millrace.corrections.TokenBatch;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

/** Two trained tokens and one of context, and a sequence of one token. */
class ValueLossTest {
    private static final TokenBatch LAYOUT =
            new TokenBatch(new int[] {0, 3, 4}, new byte[] {1, 1, 0, 1}, new int[] {0, 0});
    private static final double[] AGGREGATION = {0.25, 0.5};
    private static final float[] VALUES = {1f, 0.5f, Float.NaN, 2f};
    private static final float[] RETURNS = {0.5f, 1.5f, Float.NaN, 2.5f};

    @Test
    void shouldBeHalfOfTheSquaredErrorOfTrainedTokens() {
        ValueLoss loss = ValueLoss.of(LAYOUT, VALUES, VALUES, RETURNS, AGGREGATION, 0);
        // errors 0.5, -1 and -0.5: 0.25 (0.125 + 0.5) + 0.5 * 0.125
        assertThat(loss.loss()).isEqualTo(0.21875);
        assertThat(loss.gradient()).containsExactly(0.125f, -0.25f, 0f, -0.25f);
        assertThat(loss.clippedFraction()).isZero();
    }

    @Test
    void shouldTakeTheLargerErrorOfAValueAndItsClippedOne() {
        float[] old = {0.5f, 1f, Float.NaN, 1f};
        ValueLoss loss = ValueLoss.of(LAYOUT, VALUES, old, RETURNS, AGGREGATION, 0.25);
        // clipped values 0.75, 0.75 and 1.25: only the last is further from its return than the value is, by 1.25
        assertThat(loss.loss()).isEqualTo(0.25 * (0.125 + 0.5) + 0.5 * 0.78125);
        assertThat(loss.gradient()).containsExactly(0.125f, -0.25f, 0f, 0f);
        assertThat(loss.clippedFraction()).isCloseTo(1 / 3.0, within(1e-12));
    }

    @Test
    void shouldHaveTheGradientOfItsLoss() {
        SplittableRandom random = new SplittableRandom(1);
        for (double clip : new double[] {0, 0.3}) {
            float[] values = random(random);
            float[] old = random(random);
            float[] returns = random(random);
            float[] gradient = ValueLoss.of(LAYOUT, values, old, returns, AGGREGATION, clip)
                    .gradient();
            for (int t : new int[] {0, 1, 3}) {
                float[] up = values.clone();
                float[] down = values.clone();
                up[t] += 1f / 1024;
                down[t] -= 1f / 1024;
                double difference = ValueLoss.of(LAYOUT, up, old, returns, AGGREGATION, clip)
                                .loss()
                        - ValueLoss.of(LAYOUT, down, old, returns, AGGREGATION, clip)
                                .loss();
                assertThat((double) gradient[t])
                        .as("token %d, clip %s", t, clip)
                        .isCloseTo(difference * 512, within(1e-5));
            }
        }
    }

    private static float[] random(SplittableRandom random) {
        float[] values = new float[4];
        for (int t = 0; t < values.length; t++) {
            values[t] = (float) random.nextDouble(-1, 1);
        }
        return values;
    }

    @Test
    void shouldSayWhatShareOfTheVarianceOfReturnsItExplains() {
        // returns around their mean 1.5: 1 + 0 + 1; what is missed, -0.5, 1 and 0.5, around 1/3: 7/6
        assertThat(ValueLoss.explainedVariance(LAYOUT, VALUES, RETURNS).orElseThrow())
                .isCloseTo(5 / 12.0, within(1e-12));
        assertThat(ValueLoss.explainedVariance(LAYOUT, RETURNS, RETURNS)).hasValue(1);
        assertThat(ValueLoss.explainedVariance(LAYOUT, new float[4], RETURNS)).hasValue(0);
        assertThat(ValueLoss.explainedVariance(LAYOUT, VALUES, new float[] {2, 2, 0, 2}))
                .as("nothing to explain")
                .isEmpty();
    }

    @Test
    void shouldNameATokenWithoutANumber() {
        float[] broken = VALUES.clone();
        broken[3] = Float.NaN;
        assertThatThrownBy(() -> ValueLoss.of(LAYOUT, broken, VALUES, RETURNS, AGGREGATION, 0))
                .isInstanceOf(NonFiniteLogProbException.class)
                .hasMessageContaining("values");
    }
}
