package dev.millrace.replay;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;
import dev.millrace.replay.DecidedFigures.CountingTokens;
import dev.millrace.replay.DecidedFigures.KeptTokens;
import dev.millrace.replay.DecidedFigures.TokenFigures;
import java.util.Random;
import org.junit.jupiter.api.Test;

class TokenFiguresTest {
    @Test
    void shouldSayByHandWhatThreeTokensAre() {
        TokenBatch kept = new TokenBatch(new int[] {0, 2, 4}, new byte[] {1, 1, 0, 1});
        float ln2 = (float) Math.log(2);
        LogRatio ratio =
                LogRatio.anchor(new float[] {-ln2, 0f, Float.NaN, -2 * ln2}, new float[] {-2 * ln2, 0, 0, -ln2});

        TokenFigures figures =
                TokenFigures.of(kept, ratio, new float[] {1.5f, 1, 0, 0.5f}, new float[] {2, 3, 5, -4}, 1);
        KeptTokens tokens = figures.kept();

        assertThat(tokens.k1()).isCloseTo(0, within(1e-7));
        assertThat(tokens.k3()).isCloseTo((2 - 1 - ln2 + 0.5 - 1 + ln2) / 3, within(1e-7));
        assertThat(tokens.chiSquare()).isCloseTo((4 + 1 + 0.25) / 3 - 1, within(1e-6));
        assertThat(tokens.meanWeight()).isCloseTo((1.5 + 1 + 0.5) / 3, within(1e-7));
        assertThat(tokens.maxWeight()).isEqualTo(1.5);
        assertThat(tokens.changedWeights()).isEqualTo(1);
        assertThat(figures.counting().zeroWeights()).isZero();
        assertThat(figures.counting().chiSquare()).isEqualTo(tokens.chiSquare());
        // weight * advantage * (1 - probability): 3 * 1/2, 3 * 0 and -2 * 3/4
        assertThat(figures.counting().gradientPower()).isCloseTo((1.5 * 1.5 + 1.5 * 1.5) / 3, within(1e-6));
    }

    @Test
    void shouldSayOfAnyRaggedBatchWhatPlainLoopsSay() {
        for (long seed = 0; seed < 40; seed++) {
            Random random = new Random(seed);
            int[] offsets = new int[2 + random.nextInt(6)];
            for (int s = 1; s < offsets.length; s++) {
                offsets[s] = offsets[s - 1] + 1 + random.nextInt(700); // more than a block
            }
            int count = offsets[offsets.length - 1];
            byte[] mask = new byte[count];
            float[] behavior = new float[count];
            float[] proximal = new float[count];
            float[] weights = new float[count];
            float[] advantages = new float[count];
            double k1 = 0;
            double k3 = 0;
            double squares = 0;
            double sum = 0;
            double largest = 0;
            int kept = 0;
            int weighted = 0;
            double weightedSquares = 0;
            double power = 0;
            for (int t = 0; t < count; t++) {
                mask[t] = (byte) (t > 0 && random.nextInt(5) == 0 ? 0 : 1);
                behavior[t] = -random.nextFloat();
                proximal[t] = mask[t] == 0 ? Float.NaN : behavior[t] + (float) (0.3 * random.nextGaussian());
                weights[t] = seed % 2 == 0 && random.nextInt(7) == 0 ? 0 : random.nextFloat();
                advantages[t] = (float) random.nextGaussian();
                if (mask[t] == 1) {
                    double logRatio = (double) proximal[t] - behavior[t];
                    k1 -= logRatio;
                    k3 += Math.exp(logRatio) - 1 - logRatio;
                    squares += Math.exp(2 * logRatio);
                    sum += weights[t];
                    largest = Math.max(largest, weights[t]);
                    kept++;
                    weighted += weights[t] == 0 ? 0 : 1;
                    weightedSquares += weights[t] == 0 ? 0 : Math.exp(2 * logRatio);
                    double force = (double) weights[t] * advantages[t] * -Math.expm1(proximal[t]);
                    power += force * force;
                }
            }

            TokenFigures figures = TokenFigures.of(
                    new TokenBatch(offsets, mask), LogRatio.anchor(proximal, behavior), weights, advantages, 7);
            KeptTokens tokens = figures.kept();

            assertThat(tokens.k1()).isCloseTo(k1 / kept, within(1e-9));
            assertThat(tokens.k3()).isCloseTo(k3 / kept, within(1e-9));
            assertThat(tokens.chiSquare()).isCloseTo(squares / kept - 1, within(1e-9));
            assertThat(tokens.meanWeight()).isCloseTo(sum / kept, within(1e-9));
            assertThat(tokens.maxWeight()).isEqualTo(largest);
            assertThat(tokens.changedWeights()).isEqualTo(7);
            assertThat(figures.counting().zeroWeights()).isEqualTo(kept - weighted);
            assertThat(figures.counting().chiSquare()).isCloseTo(weightedSquares / weighted - 1, within(1e-9));
            assertThat(figures.counting().gradientPower()).isCloseTo(power / kept, within(1e-9));
        }
    }

    @Test
    void shouldBeZeroWhereNothingIsKept() {
        TokenBatch nothing = new TokenBatch(new int[] {0, 2}, new byte[2]);
        LogRatio ratio = LogRatio.anchor(new float[] {Float.NaN, 1}, new float[2]);

        TokenFigures figures = TokenFigures.of(nothing, ratio, new float[2], new float[2], 0);
        assertThat(figures.kept()).isEqualTo(new KeptTokens(0, 0, 0, 0, 0, 0));
        assertThat(figures.counting()).isEqualTo(new CountingTokens(0, Double.NaN, Double.NaN));
    }
}
