package dev.millrace.corrections.length;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.corrections.TokenBatch;
import java.util.Arrays;
import java.util.Random;
import java.util.function.ToDoubleFunction;
import org.junit.jupiter.api.Test;

class LengthTest {
    private static TokenBatch ofLengths(int... lengths) {
        int[] offsets = new int[lengths.length + 1];
        for (int s = 0; s < lengths.length; s++) {
            offsets[s + 1] = offsets[s] + lengths[s];
        }
        byte[] mask = new byte[offsets[lengths.length]];
        Arrays.fill(mask, (byte) 1);
        return new TokenBatch(offsets, mask, new int[lengths.length]);
    }

    private static byte[] rejecting(TokenBatch batch, int... sequences) {
        byte[] mask = batch.mask();
        for (int s : sequences) {
            Arrays.fill(mask, batch.start(s), batch.end(s), (byte) 0);
        }
        return mask;
    }

    @Test
    void shouldCountRejectionsByDoublingLengths() {
        TokenBatch batch = ofLengths(1, 2, 3, 5, 0, 9, 12);
        byte[] mask = rejecting(batch, 2, 5, 6);
        mask[batch.start(3)] = 0; // a token masked without rejecting its sequence

        LengthTrapReport report = LengthTrapReport.of(batch, mask);

        assertThat(report.buckets())
                .containsExactly(
                        new LengthTrapReport.Bucket(1, 1, 0),
                        new LengthTrapReport.Bucket(2, 2, 1),
                        new LengthTrapReport.Bucket(4, 1, 0),
                        new LengthTrapReport.Bucket(8, 2, 2));
        assertThat(report.sequences()).isEqualTo(6);
        assertThat(report.rejected()).isEqualTo(3);
        // length ranks 0..5 against rejection ranks 1 1 4 1 4 4: 10.5 / √(17.5 · 13.5)
        assertThat(report.rankCorrelation()).isCloseTo(0.6831, within(1e-4));
        assertThat(report.isTrap()).isFalse();
    }

    private static LengthTrapReport filtered(ToDoubleFunction<double[]> statistic, double threshold) {
        Random random = new Random(3);
        int[] lengths = random.ints(600, 4, 400).toArray();
        TokenBatch batch = ofLengths(lengths);
        byte[] mask = batch.mask();
        for (int s = 0; s < lengths.length; s++) {
            double[] logRatios =
                    random.doubles(lengths[s]).map(x -> 0.1 * (x - 0.5)).toArray();
            if (Math.abs(statistic.applyAsDouble(logRatios)) > threshold) {
                Arrays.fill(mask, batch.start(s), batch.end(s), (byte) 0);
            }
        }
        return LengthTrapReport.of(batch, mask);
    }

    @Test
    void shouldCatchAThresholdOnSumsAndLetOneOnTheFirstTokenPass() {
        LengthTrapReport bySum = filtered(x -> Arrays.stream(x).sum(), 0.4);
        LengthTrapReport byFirstToken = filtered(x -> x[0], 0.03);

        assertThat(bySum.rejected()).isBetween(50, 550);
        assertThat(bySum.isTrap()).isTrue();
        assertThat(byFirstToken.rejected()).isBetween(50, 550);
        assertThat(byFirstToken.isTrap()).isFalse();
    }

    @Test
    void shouldHaveNothingToSayAboutEmptyBatchesAndFullRejections() {
        LengthTrapReport empty = LengthTrapReport.of(ofLengths(), new byte[0]);
        TokenBatch batch = ofLengths(1, 8);

        assertThat(empty.buckets()).isEmpty();
        assertThat(empty.isTrap()).isFalse();
        assertThat(LengthTrapReport.of(batch, rejecting(batch, 0, 1)).rankCorrelation())
                .isZero();
        TokenBatch context = new TokenBatch(new int[] {0, 1}, new byte[] {0});
        assertThatThrownBy(() -> LengthTrapReport.of(context, new byte[] {1}))
                .hasMessageContaining("cannot train a context token: sequence=0, token=0");
    }

    @Test
    void shouldPriceLengthUniformlyByGroupAndByAnchor() {
        TokenBatch batch =
                new TokenBatch(new int[] {0, 10, 20, 45, 45}, new byte[45], new int[] {0, 0, 0, 1}).withMask(ones(45));
        boolean[] correct = {true, false, true, false};

        assertThat(new UniformLengthPenalty(0.01).perSequence(batch, correct))
                .containsExactly(new double[] {0.1, 0.1, 0.25, 0}, within(1e-12));
        assertThat(new GroupAdaptiveLengthPenalty(0.01).perSequence(batch, correct))
                .containsExactly(new double[] {0.1 * 2 / 3, 0.1 * 2 / 3, 0.25 * 2 / 3, 0}, within(1e-12));
        // the anchor is 10 tokens; 25 exceed it by 1.5, 1.3 of it beyond the tolerance
        assertThat(new AnchorLengthPenalty(0.1, 0.2, 1).perSequence(batch, correct))
                .containsExactly(new double[] {0, 0, 0.13, 0}, within(1e-12));
        assertThat(new AnchorLengthPenalty(0.1, 0.2, 0.05).perSequence(batch, correct)[2])
                .isEqualTo(0.05);
    }

    @Test
    void shouldChargeUnsolvedGroupsTheFloorOnly() {
        TokenBatch batch = ofLengths(10, 20);

        assertThat(new GroupAdaptiveLengthPenalty(0.01).perSequence(batch, new boolean[2]))
                .containsExactly(new double[] {0.05, 0.1}, within(1e-12));
        assertThat(new AnchorLengthPenalty(1, 0, 1).perSequence(batch, new boolean[2]))
                .containsExactly(0, 0);
    }

    @Test
    void shouldCompareLengthsWithinAGroupOnly() {
        // group 0: 10, 20 and 30 tokens, an answer without any, which does not count as shortest; group 1 alone; group
        // 2 alike
        TokenBatch batch = new TokenBatch(
                        new int[] {0, 10, 30, 60, 60, 65, 69, 73}, new byte[73], new int[] {0, 0, 0, 0, 1, 2, 2})
                .withMask(ones(73));

        assertThat(new KimiLengthPenalty(0.2, 0.5)
                        .perSequence(batch, new boolean[] {false, true, true, true, true, true, false}))
                .containsExactly(new double[] {0, 0, 0.1, 0, 0, 0, 0}, within(1e-12));
        assertThat(new LaserLengthReward(10, 0.5, 0.5)
                        .perSequence(batch, new boolean[] {true, true, true, true, true, false, true}))
                .containsExactly(-0.5, 0, 0, 0, -0.5, 0, -0.5);
    }

    @Test
    void shouldRefusePricesAndVerdictsThatMeanNothing() {
        TokenBatch batch = ofLengths(1);

        assertThatThrownBy(() -> new UniformLengthPenalty(-1)).hasMessageContaining("price_per_token");
        assertThatThrownBy(() -> new AnchorLengthPenalty(1, Double.NaN, 1)).hasMessageContaining("tolerance");
        assertThatThrownBy(() -> new GroupAdaptiveLengthPenalty(1).perSequence(batch, new boolean[2]))
                .hasMessageContaining("length=2, sequences=1");
    }

    private static byte[] ones(int n) {
        byte[] mask = new byte[n];
        Arrays.fill(mask, (byte) 1);
        return mask;
    }
}
