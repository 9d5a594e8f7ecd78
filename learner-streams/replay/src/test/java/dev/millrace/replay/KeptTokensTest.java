package dev.millrace.replay;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;
import dev.millrace.corrections.weights.TokenTruncatedWeights;
import java.util.Random;
import org.junit.jupiter.api.Test;

class KeptTokensTest {
    private static final double CAP = 1.3;

    @Test
    void shouldSayByHandWhatThreeTokensAre() {
        TokenBatch kept = new TokenBatch(new int[] {0, 2, 4}, new byte[] {1, 1, 0, 1});
        float ln2 = (float) Math.log(2);
        LogRatio ratio = LogRatio.anchor(new float[] {ln2, 0f, Float.NaN, -ln2}, new float[4]);

        KeptTokens tokens = KeptTokens.truncated(kept, ratio, 1.5);

        assertThat(tokens.k1()).isCloseTo(0, within(1e-7));
        assertThat(tokens.k3()).isCloseTo((2 - 1 - ln2 + 0.5 - 1 + ln2) / 3, within(1e-7));
        assertThat(tokens.chiSquare()).isCloseTo((4 + 1 + 0.25) / 3 - 1, within(1e-6));
        assertThat(tokens.meanWeight()).isCloseTo((1.5 + 1 + 0.5) / 3, within(1e-7));
        assertThat(tokens.maxWeight()).isEqualTo(1.5);
        assertThat(tokens.changedWeights()).isEqualTo(1);
    }

    @Test
    void shouldBeTheSameInOneWalkAsOfTheWeightsThemselves() {
        for (long seed = 0; seed < 40; seed++) {
            Random random = new Random(seed);
            int[] offsets = new int[1 + random.nextInt(6)];
            for (int s = 1; s < offsets.length; s++) {
                offsets[s] = offsets[s - 1] + random.nextInt(700); // more than a block, and none at all
            }
            int count = offsets[offsets.length - 1];
            byte[] mask = new byte[count];
            float[] behavior = new float[count];
            float[] proximal = new float[count];
            for (int t = 0; t < count; t++) {
                mask[t] = (byte) (random.nextInt(5) == 0 ? 0 : 1);
                behavior[t] = -random.nextFloat();
                proximal[t] = mask[t] == 0 ? Float.NaN : behavior[t] + (float) (0.3 * random.nextGaussian());
            }
            TokenBatch kept = new TokenBatch(offsets, mask);
            LogRatio ratio = LogRatio.anchor(proximal, behavior);
            float[] weights = new float[count];
            int truncated =
                    new TokenTruncatedWeights(CAP).compute(kept, ratio, weights).truncatedTokens();

            KeptTokens walked = KeptTokens.truncated(kept, ratio, CAP);
            KeptTokens given = KeptTokens.weighted(kept, ratio, weights, truncated);

            assertThat(walked.k1()).isEqualTo(given.k1());
            assertThat(walked.k3()).isEqualTo(given.k3());
            assertThat(walked.chiSquare()).isEqualTo(given.chiSquare());
            assertThat(walked.meanWeight()).isCloseTo(given.meanWeight(), within(1e-7));
            assertThat(walked.maxWeight()).isCloseTo(given.maxWeight(), within(1e-6));
            assertThat(walked.changedWeights()).isEqualTo(given.changedWeights());
        }
    }

    @Test
    void shouldBeZeroWhereNothingIsKept() {
        TokenBatch nothing = new TokenBatch(new int[] {0, 2}, new byte[2]);
        LogRatio ratio = LogRatio.anchor(new float[] {Float.NaN, 1}, new float[2]);

        assertThat(KeptTokens.truncated(nothing, ratio, 2)).isEqualTo(new KeptTokens(0, 0, 0, 0, 0, 0));
        assertThat(KeptTokens.weighted(nothing, ratio, new float[2], 0)).isEqualTo(new KeptTokens(0, 0, 0, 0, 0, 0));
    }
}
