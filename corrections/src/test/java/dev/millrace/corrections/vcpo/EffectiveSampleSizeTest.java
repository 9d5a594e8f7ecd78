package dev.millrace.corrections.vcpo;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.corrections.NonFiniteLogProbException;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;
import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class EffectiveSampleSizeTest {

    private static double[] logs(double... weights) {
        return Arrays.stream(weights).map(Math::log).toArray();
    }

    @Test
    void shouldGiveTheHandDerivedNumber() {
        // weights 1, 2, 3: 36 / 14
        EffectiveSampleSize ess = EffectiveSampleSize.ofRaw(logs(1, 2, 3));

        assertThat(ess.ess()).isCloseTo(36.0 / 14, within(1e-14));
        assertThat(ess.ratio()).isCloseTo(36.0 / 42, within(1e-14));
        // truncated at 2: weights 1, 2, 2: 25 / 9
        assertThat(EffectiveSampleSize.ofTruncated(logs(1, 2, 3), 2).ess()).isCloseTo(25.0 / 9, within(1e-14));
    }

    @Test
    void shouldBeOneOnPolicy() {
        assertThat(EffectiveSampleSize.ofRaw(new double[7]).ratio()).isEqualTo(1.0);
        assertThat(EffectiveSampleSize.ofRaw(new double[] {-3.5}).ratio()).isEqualTo(1.0);
    }

    @Test
    void shouldNotOverflowOrVanishWithLongSequences() {
        assertThat(EffectiveSampleSize.ofRaw(new double[] {5000, 5000 + Math.log(2), 5000 + Math.log(3)})
                        .ess())
                .isCloseTo(36.0 / 14, within(1e-10));
        assertThat(EffectiveSampleSize.ofRaw(new double[] {-5000, -5000 + Math.log(2), -5000 + Math.log(3)})
                        .ess())
                .isCloseTo(36.0 / 14, within(1e-10));
        assertThat(EffectiveSampleSize.ofRaw(new double[] {1e300, 0, -1e300}).ratio())
                .isEqualTo(1.0 / 3);
    }

    @Test
    void shouldCountZeroWeightsAsSamplesThatGiveNothing() {
        assertThat(EffectiveSampleSize.ofRaw(new double[] {0, Double.NEGATIVE_INFINITY})
                        .ratio())
                .isEqualTo(0.5);
    }

    @Test
    void shouldRefuseWhatHasNoEffectiveSampleSize() {
        assertThatThrownBy(() -> EffectiveSampleSize.ofRaw(new double[0])).hasMessageContaining("no weights");
        assertThatThrownBy(() ->
                        EffectiveSampleSize.ofRaw(new double[] {Double.NEGATIVE_INFINITY, Double.NEGATIVE_INFINITY}))
                .hasMessageContaining("all 2 weights are 0");
        assertThatThrownBy(() -> EffectiveSampleSize.ofRaw(new double[] {0, Double.NaN}))
                .hasMessageContaining("index=1");
        assertThatThrownBy(() -> EffectiveSampleSize.ofRaw(new double[] {Double.POSITIVE_INFINITY}))
                .hasMessageContaining("value=Infinity");
    }

    @ParameterizedTest
    @ValueSource(doubles = {0, -1, Double.NaN, Double.POSITIVE_INFINITY})
    void shouldRefuseCapsThatAreNoBound(double cap) {
        assertThatThrownBy(() -> EffectiveSampleSize.ofTruncated(new double[1], cap))
                .hasMessageContaining("cap=" + cap);
    }

    @Test
    void shouldStayInRangeAndAgreeWithLinearSumsOnRandomWeights() {
        Random random = new Random(5);
        for (int round = 0; round < 2000; round++) {
            double spread = Math.pow(10, 3 * random.nextDouble() - 1);
            double[] logWeights = random.doubles(1 + random.nextInt(20))
                    .map(u -> spread * (u - 0.5))
                    .toArray();
            EffectiveSampleSize ess = EffectiveSampleSize.ofRaw(logWeights);

            double sum = Arrays.stream(logWeights).map(Math::exp).sum();
            double squares = Arrays.stream(logWeights).map(w -> Math.exp(2 * w)).sum();
            assertThat(ess.ratio()).isBetween(1.0 / logWeights.length, 1.0);
            assertThat(ess.ess()).isCloseTo(sum * sum / squares, within(1e-9 * ess.ess()));
            assertThat(EffectiveSampleSize.ofTruncated(logWeights, 1).ratio()).isBetween(1.0 / logWeights.length, 1.0);
        }
    }

    @Test
    void shouldNotDependOnOrderOrScaleOfWeights() {
        double[] logWeights = {0.5, -2, 3, 0};
        double expected = EffectiveSampleSize.ofRaw(logWeights).ess();

        assertThat(EffectiveSampleSize.ofRaw(new double[] {3, 0, 0.5, -2}).ess())
                .isCloseTo(expected, within(1e-14));
        assertThat(EffectiveSampleSize.ofRaw(new double[] {100.5, 98, 103, 100}).ess())
                .isCloseTo(expected, within(1e-12));
    }

    @Test
    void shouldSumLogRatiosOfTrainedTokensAndLeaveOutSequencesWithoutAny() {
        TokenBatch batch = new TokenBatch(new int[] {0, 3, 4, 4, 6}, new byte[] {1, 0, 1, 0, 1, 1});
        float[] behavior = {-1f, Float.NaN, -2f, 0f, -1f, -1f};
        float[] old = {-0.5f, 0f, -2.25f, 5f, -1f, -3f};

        assertThat(SequenceLogWeights.ofTrainedSequences(batch, LogRatio.engineMismatch(old, behavior)))
                .containsExactly(0.25, -2.0);
    }

    @Test
    void shouldNameSequenceAndTokenOfNonFiniteLogProb() {
        TokenBatch batch = new TokenBatch(new int[] {0, 1, 2}, new byte[] {1, 1});

        assertThatThrownBy(() -> SequenceLogWeights.ofTrainedSequences(
                        batch, LogRatio.engineMismatch(new float[] {0f, Float.NaN}, new float[2])))
                .isInstanceOf(NonFiniteLogProbException.class)
                .hasMessageContaining("sequence=1, token=0");
    }
}
