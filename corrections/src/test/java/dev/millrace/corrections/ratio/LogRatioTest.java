package dev.millrace.corrections.ratio;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.corrections.NonFiniteLogProbException;
import dev.millrace.corrections.RandomBatches;
import dev.millrace.corrections.TokenBatch;
import org.junit.jupiter.api.Test;

class LogRatioTest {
    private static final TokenBatch TWO_SEQUENCES = new TokenBatch(new int[] {0, 1, 3}, new byte[] {1, 1, 1});

    @Test
    void shouldSubtractInDouble() {
        float target = -16.1f;
        float sampler = -16.100002f;

        double difference = LogRatio.engineMismatch(new float[] {target}, new float[] {sampler})
                .at(0);

        assertThat(difference).isEqualTo((double) target - (double) sampler);
    }

    @Test
    void shouldMultiplyToTheFullRatio() {
        float[] behavior = {-1.0f};
        float[] old = {-1.25f};
        float[] proximal = {-0.5f};
        float[] current = {-0.75f};

        double product = LogRatio.engineMismatch(old, behavior).at(0)
                + LogRatio.staleness(proximal, old).at(0)
                + LogRatio.trustRegion(current, proximal).at(0);

        assertThat(product).isEqualTo(LogRatio.full(current, behavior).at(0)).isEqualTo(0.25);
        assertThat(LogRatio.anchor(proximal, behavior).at(0)).isEqualTo(0.5);
    }

    @Test
    void shouldBoundAtTwenty() {
        LogRatio ratio = LogRatio.engineMismatch(new float[] {-1f, -90f}, new float[] {-81f, -1f});

        assertThat(ratio.at(0)).isCloseTo(80, within(1e-5));
        assertThat(ratio.boundedAt(0)).isEqualTo(20);
        assertThat(ratio.boundedAt(1)).isEqualTo(-20);
    }

    @Test
    void shouldBlameTheVectorThatIsNotFinite() {
        LogRatio badTarget = LogRatio.engineMismatch(new float[] {0, 0, Float.NaN}, new float[3]);
        LogRatio badSampler = LogRatio.staleness(new float[3], new float[] {0, Float.NEGATIVE_INFINITY, 0});

        assertThatThrownBy(() -> badTarget.finiteAt(TWO_SEQUENCES, 1, 2))
                .isInstanceOf(NonFiniteLogProbException.class)
                .hasMessage("old log-probs must be finite at trained tokens: sequence=1, token=1, value=NaN");
        assertThatThrownBy(() -> badSampler.requireFinite(TWO_SEQUENCES))
                .hasMessage("old log-probs must be finite at trained tokens: sequence=1, token=0, value=-Infinity");
    }

    @Test
    void shouldRefuseVectorsOfDifferentLength() {
        assertThatThrownBy(() -> LogRatio.full(new float[2], new float[3]))
                .hasMessage("current and behavior log-probs need the same length: 2 and 3");
        assertThatThrownBy(() -> LogRatio.full(new float[2], new float[2]).requireFits(TWO_SEQUENCES))
                .hasMessageContaining("length=2, tokens=3");
    }

    @Test
    void shouldSumTrainedTokensOnlyWhateverContextHolds() {
        for (long seed = 0; seed < 40; seed++) {
            RandomBatches random = new RandomBatches(seed);
            TokenBatch batch = random.next();
            float[] behavior = random.logProbs(batch);
            float[] proximal = random.near(batch, behavior, 0.3);
            LogRatio ratio = LogRatio.anchor(proximal, behavior);
            for (int s = 0; s < batch.sequenceCount(); s++) {
                double sum = 0;
                double squares = 0;
                for (int t = batch.start(s); t < batch.end(s); t++) {
                    if (batch.isTrained(t)) {
                        double logRatio = (double) proximal[t] - behavior[t];
                        sum += logRatio;
                        squares += logRatio * logRatio;
                    } else {
                        proximal[t] = Float.NaN;
                    }
                }
                assertThat(ratio.sum(batch, s)).isCloseTo(sum, within(1e-9));
                assertThat(ratio.sumOfSquares(batch, s)).isCloseTo(squares, within(1e-9));
            }
        }
    }
}
