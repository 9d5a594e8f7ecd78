package dev.millrace.replay;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;
import dev.millrace.replay.DecidedFigures.KeptTokens;
import java.util.Random;
import org.junit.jupiter.api.Test;

class KeptTokensTest {
    @Test
    void shouldSayByHandWhatThreeTokensAre() {
        TokenBatch kept = new TokenBatch(new int[] {0, 2, 4}, new byte[] {1, 1, 0, 1});
        float ln2 = (float) Math.log(2);
        LogRatio ratio = LogRatio.anchor(new float[] {ln2, 0f, Float.NaN, -ln2}, new float[4]);

        KeptTokens tokens = KeptTokens.of(kept, ratio, new float[] {1.5f, 1, 0, 0.5f}, 1);

        assertThat(tokens.k1()).isCloseTo(0, within(1e-7));
        assertThat(tokens.k3()).isCloseTo((2 - 1 - ln2 + 0.5 - 1 + ln2) / 3, within(1e-7));
        assertThat(tokens.chiSquare()).isCloseTo((4 + 1 + 0.25) / 3 - 1, within(1e-6));
        assertThat(tokens.meanWeight()).isCloseTo((1.5 + 1 + 0.5) / 3, within(1e-7));
        assertThat(tokens.maxWeight()).isEqualTo(1.5);
        assertThat(tokens.changedWeights()).isEqualTo(1);
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
            double k1 = 0;
            double k3 = 0;
            double squares = 0;
            double sum = 0;
            double largest = 0;
            int kept = 0;
            for (int t = 0; t < count; t++) {
                mask[t] = (byte) (t > 0 && random.nextInt(5) == 0 ? 0 : 1);
                behavior[t] = -random.nextFloat();
                proximal[t] = mask[t] == 0 ? Float.NaN : behavior[t] + (float) (0.3 * random.nextGaussian());
                weights[t] = random.nextFloat();
                if (mask[t] == 1) {
                    double logRatio = (double) proximal[t] - behavior[t];
                    k1 -= logRatio;
                    k3 += Math.exp(logRatio) - 1 - logRatio;
                    squares += Math.exp(2 * logRatio);
                    sum += weights[t];
                    largest = Math.max(largest, weights[t]);
                    kept++;
                }
            }

            KeptTokens tokens =
                    KeptTokens.of(new TokenBatch(offsets, mask), LogRatio.anchor(proximal, behavior), weights, 7);

            assertThat(tokens.k1()).isCloseTo(k1 / kept, within(1e-9));
            assertThat(tokens.k3()).isCloseTo(k3 / kept, within(1e-9));
            assertThat(tokens.chiSquare()).isCloseTo(squares / kept - 1, within(1e-9));
            assertThat(tokens.meanWeight()).isCloseTo(sum / kept, within(1e-9));
            assertThat(tokens.maxWeight()).isEqualTo(largest);
            assertThat(tokens.changedWeights()).isEqualTo(7);
        }
    }

    @Test
    void shouldBeZeroWhereNothingIsKept() {
        TokenBatch nothing = new TokenBatch(new int[] {0, 2}, new byte[2]);
        LogRatio ratio = LogRatio.anchor(new float[] {Float.NaN, 1}, new float[2]);

        assertThat(KeptTokens.of(nothing, ratio, new float[2], 0)).isEqualTo(new KeptTokens(0, 0, 0, 0, 0, 0));
    }
}
