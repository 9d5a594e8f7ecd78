package dev.millrace.corrections.m2po;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.corrections.NonFiniteLogProbException;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.golden.GoldenCase;
import dev.millrace.corrections.golden.GoldenCases;
import dev.millrace.corrections.ratio.LogRatio;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

class SecondMomentMaskTest {

    /** One sequence of trained tokens with the given log ratios. */
    private static TokenBatch oneSequence(int tokens) {
        byte[] mask = new byte[tokens];
        Arrays.fill(mask, (byte) 1);
        return new TokenBatch(new int[] {0, tokens}, mask);
    }

    private static byte[] maskOf(double threshold, float... logRatios) {
        byte[] mask = new byte[logRatios.length];
        new SecondMomentMask(threshold)
                .compute(oneSequence(logRatios.length), LogRatio.anchor(logRatios, new float[logRatios.length]), mask);
        return mask;
    }

    @Test
    void shouldMaskLargestSquaresUntilMeanOfRestIsBelowThreshold() {
        // squares 4, 1, 0.25, 0.0625: means of suffixes 1.328, 0.4375, 0.15625, 0.0625
        float[] logRatios = {0.25f, -2f, 0.5f, 1f};
        byte[] mask = new byte[4];

        SecondMoment moment =
                new SecondMomentMask(0.5).compute(oneSequence(4), LogRatio.anchor(logRatios, new float[4]), mask);

        assertThat(mask).containsExactly(1, 0, 1, 1);
        assertThat(moment.candidates()).isEqualTo(4);
        assertThat(moment.masked()).isEqualTo(1);
        assertThat(moment.before()).isEqualTo(5.3125 / 4);
        assertThat(moment.after()).isEqualTo(1.3125 / 3);
        assertThat(moment.withinThreshold()).isTrue();
    }

    @Test
    void shouldMaskNothingWhenMeanIsAlreadyBelowThresholdThoughSomeTokensAreAbove() {
        assertThat(maskOf(1.4, 0.25f, -2f, 0.5f, 1f)).containsExactly(1, 1, 1, 1);
    }

    @Test
    void shouldRequireMeanStrictlyBelowThreshold() {
        assertThat(maskOf(0.25, 0.5f, 0.5f)).containsExactly(0, 1);
        assertThat(maskOf(Math.nextUp(0.25), 0.5f, 0.5f)).containsExactly(1, 1);
    }

    @Test
    void shouldDecideExactlyWhereARoundedSumCannotSay() {
        float[] logRatios = new float[1 << 20];
        Arrays.fill(
                logRatios,
                0x1p-12f); // squares of 2^-24, next to one of 1: their mean is a double, since 2^20 divides it
        logRatios[0] = 1f;
        double mean = (1 + (logRatios.length - 1) * 0x1p-24) / logRatios.length;

        assertThat(maskOf(mean, logRatios)[0]).isZero();
        assertThat(maskOf(Math.nextUp(mean), logRatios)[0]).isEqualTo((byte) 1);
    }

    @Test
    void shouldMaskTheEarlierOfEqualTokensFirst() {
        // squares 1, 1, 0, 0, 0: all of them 0.4, without one of the ones 0.25
        assertThat(maskOf(0.3, 1f, 0f, 0f, -1f, 0f)).containsExactly(0, 1, 1, 1, 1);
    }

    @Test
    void shouldKeepOnlyTheSmallestWhenNoTokenIsBelowThreshold() {
        byte[] mask = new byte[4];
        SecondMoment moment = new SecondMomentMask(1e-12)
                .compute(oneSequence(4), LogRatio.anchor(new float[] {0.5f, 0.25f, 1f, -0.25f}, new float[4]), mask);

        assertThat(mask).containsExactly(0, 0, 0, 1);
        assertThat(moment.withinThreshold()).isFalse();
        assertThat(moment.after()).isEqualTo(0.0625);
    }

    @Test
    void shouldKeepExactlyOneTokenAtThresholdZero() {
        assertThat(maskOf(0.0, 0f, 0f, 0f)).containsExactly(0, 0, 1);
    }

    @Test
    void shouldKeepEverythingOnPolicy() {
        assertThat(maskOf(0.04, 0f, 0f, 0f)).containsExactly(1, 1, 1);
    }

    @Test
    void shouldIgnoreContextTokensEvenWhenNaN() {
        TokenBatch batch = new TokenBatch(new int[] {0, 1, 1, 4}, new byte[] {1, 0, 1, 0});
        byte[] mask = new byte[4];

        SecondMoment moment = new SecondMomentMask(0.04)
                .compute(
                        batch,
                        LogRatio.anchor(
                                new float[] {-1f, 0f, -3f, Float.POSITIVE_INFINITY},
                                new float[] {-1f, Float.NaN, -2f, -1e30f}),
                        mask);

        assertThat(mask).containsExactly(1, 0, 0, 0);
        assertThat(moment).isEqualTo(new SecondMoment(2, 1, 0.5, 0.0, true));
    }

    @Test
    void shouldReturnZerosForBatchesWithoutTrainedTokens() {
        byte[] mask = new byte[2];
        TokenBatch context = new TokenBatch(new int[] {0, 2, 2}, new byte[2]);

        assertThat(new SecondMomentMask(0.04).compute(context, LogRatio.anchor(new float[2], new float[2]), mask))
                .isEqualTo(new SecondMoment(0, 0, 0.0, 0.0, true));
        assertThat(new SecondMomentMask(0.04)
                        .compute(
                                new TokenBatch(new int[] {0}, new byte[0]),
                                LogRatio.anchor(new float[0], new float[0]),
                                new byte[0])
                        .candidates())
                .isZero();
    }

    @Test
    void shouldNameSequenceAndTokenOfNonFiniteLogProb() {
        TokenBatch batch = new TokenBatch(new int[] {0, 1, 3}, new byte[] {1, 1, 1});

        assertThatThrownBy(() -> new SecondMomentMask(0.04)
                        .compute(batch, LogRatio.anchor(new float[3], new float[] {0f, 0f, Float.NaN}), new byte[3]))
                .isInstanceOf(NonFiniteLogProbException.class)
                .hasMessageContaining("behavior log-probs")
                .hasMessageContaining("sequence=1, token=1");
        assertThatThrownBy(() -> new SecondMomentMask(0.04)
                        .compute(
                                batch,
                                LogRatio.anchor(new float[] {0f, Float.NEGATIVE_INFINITY, 0f}, new float[3]),
                                new byte[3]))
                .isInstanceOf(NonFiniteLogProbException.class)
                .hasMessageContaining("proximal log-probs")
                .hasMessageContaining("sequence=1, token=0");
    }

    @ParameterizedTest
    @ValueSource(doubles = {-0.1, Double.NaN, Double.POSITIVE_INFINITY})
    void shouldRefuseThresholdsThatAreNoBound(double threshold) {
        assertThatThrownBy(() -> new SecondMomentMask(threshold)).hasMessageContaining("threshold=" + threshold);
    }

    @Test
    void shouldRefuseArraysOfOtherLengths() {
        assertThatThrownBy(() -> new SecondMomentMask(0.04)
                        .compute(oneSequence(2), LogRatio.anchor(new float[2], new float[2]), new byte[3]))
                .hasMessageContaining("mask");
    }

    @Test
    void shouldConsiderOnlyTokensWhoseUpdateLeavesThePolicyWhenHarmfulOnly() {
        float[] proximal = {2f, 2f, -2f, -2f, 1f};
        double[] advantages = {1, -1, 1, -1, 0};
        TokenBatch ofOneTokenEach = new TokenBatch(new int[] {0, 1, 2, 3, 4, 5}, new byte[] {1, 1, 1, 1, 1});
        byte[] mask = new byte[5];

        SecondMoment moment = new SecondMomentMask(0.04)
                .computeHarmful(ofOneTokenEach, LogRatio.anchor(proximal, new float[5]), advantages, mask);

        // harmful are the first (up, ratio > 1) and the fourth (down, ratio < 1); one of them must stay
        assertThat(mask).containsExactly(0, 1, 1, 1, 1);
        assertThat(moment).isEqualTo(new SecondMoment(2, 1, 4.0, 4.0, false));
    }

    @Test
    void shouldRefuseNonFiniteValuesOfHarmlessTokensToo() {
        assertThatThrownBy(() -> new SecondMomentMask(0.04)
                        .computeHarmful(
                                oneSequence(1),
                                LogRatio.anchor(new float[1], new float[] {Float.NaN}),
                                new double[1],
                                new byte[1]))
                .isInstanceOf(NonFiniteLogProbException.class);
        assertThatThrownBy(() -> new SecondMomentMask(0.04)
                        .computeHarmful(
                                oneSequence(1),
                                LogRatio.anchor(new float[1], new float[1]),
                                new double[] {Double.NaN},
                                new byte[1]))
                .hasMessageContaining("advantages");
    }

    static List<GoldenCase> golden() {
        return GoldenCases.of("m2po");
    }

    @ParameterizedTest
    @MethodSource("golden")
    void shouldAgreeWithTheReference(GoldenCase golden) {
        TokenBatch batch = golden.batch();
        byte[] mask = new byte[batch.tokenCount()];
        SecondMoment moment = new SecondMomentMask(
                        golden.config().path("m2_threshold").asDouble())
                .compute(
                        batch, LogRatio.anchor(golden.tokens("old_logprobs"), golden.tokens("rollout_logprobs")), mask);

        List<Integer> expected = new ArrayList<>();
        golden.expected().path("mask").forEach(sequence -> sequence.forEach(bit -> expected.add(bit.asInt())));
        assertThat(mask)
                .containsExactly(expected.stream().mapToInt(Integer::intValue).toArray());
        assertThat(moment.masked())
                .isEqualTo(golden.expected().path("num_masked").asInt());
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4, 5, 6, 7, 8})
    void shouldAgreeWithTheSortedRuleOnRandomRaggedBatches(long seed) {
        Random random = new Random(seed);
        for (int round = 0; round < 200; round++) {
            TokenBatch batch = raggedBatch(random, 12, 40);
            float[] behavior = gaussians(random, batch.tokenCount(), 2.0);
            float[] proximal = withRatios(random, behavior, round % 6);
            double threshold = Math.pow(10.0, -4 + 5 * random.nextDouble());
            byte[] mask = new byte[batch.tokenCount()];

            SecondMoment moment =
                    new SecondMomentMask(threshold).compute(batch, LogRatio.anchor(proximal, behavior), mask);

            assertThat(mask)
                    .as("seed %d, round %d, threshold %s", seed, round, threshold)
                    .isEqualTo(SortedSecondMomentRule.mask(batch, behavior, proximal, threshold));
            checkSummary(moment, batch, behavior, proximal, mask, threshold);
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 2, 3, 4, 5})
    void shouldAgreeWithTheSortedRuleOnLargeBatches(int kind) {
        Random random = new Random(100 + kind);
        TokenBatch batch = raggedBatch(random, 60, 2000);
        float[] behavior = gaussians(random, batch.tokenCount(), 2.0);
        float[] proximal = withRatios(random, behavior, kind);
        for (double threshold : new double[] {1e-3, 0.04, 0.249, 0.25, 0.9, 30}) {
            byte[] mask = new byte[batch.tokenCount()];
            new SecondMomentMask(threshold).compute(batch, LogRatio.anchor(proximal, behavior), mask);

            assertThat(Arrays.equals(mask, SortedSecondMomentRule.mask(batch, behavior, proximal, threshold)))
                    .as("kind %d, threshold %s", kind, threshold)
                    .isTrue();
        }
    }

    @Test
    void shouldAgreeWithTheSortedRuleOnHarmfulTokens() {
        Random random = new Random(9);
        for (int round = 0; round < 200; round++) {
            TokenBatch batch = raggedBatch(random, 8, 30);
            float[] behavior = gaussians(random, batch.tokenCount(), 2.0);
            float[] proximal = withRatios(random, behavior, round % 6);
            double[] advantages = random.doubles(batch.sequenceCount(), -1, 1).toArray();
            byte[] mask = new byte[batch.tokenCount()];
            new SecondMomentMask(0.1).computeHarmful(batch, LogRatio.anchor(proximal, behavior), advantages, mask);

            List<Integer> harmful = new ArrayList<>();
            for (int t = 0; t < batch.tokenCount(); t++) {
                if (batch.isTrained(t) && (proximal[t] - behavior[t]) * advantages[batch.sequenceOf(t)] > 0) {
                    harmful.add(t);
                }
            }
            byte[] expected = batch.mask();
            SortedSecondMomentRule.masked(harmful, behavior, proximal, 0.1).forEach(t -> expected[t] = 0);
            assertThat(mask).as("round %d", round).isEqualTo(expected);
        }
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3})
    void shouldGiveTheMeanThatTheMaskStartsFrom(long seed) {
        Random random = new Random(seed);
        for (int round = 0; round < 60; round++) {
            TokenBatch batch = raggedBatch(random, 12, 40);
            float[] behavior = gaussians(random, batch.tokenCount(), 2.0);
            LogRatio ratio = LogRatio.anchor(withRatios(random, behavior, round % 6), behavior);
            double before = new SecondMomentMask(0.04)
                    .compute(batch, ratio, new byte[batch.tokenCount()])
                    .before();

            assertThat(SecondMomentMask.mean(batch, ratio)).isCloseTo(before, within(1e-12 * (1 + before)));
        }
        assertThatThrownBy(() ->
                        SecondMomentMask.mean(oneSequence(1), LogRatio.anchor(new float[] {Float.NaN}, new float[1])))
                .isInstanceOf(NonFiniteLogProbException.class);
    }

    @Test
    void shouldKeepMoreTokensUnderALargerThreshold() {
        Random random = new Random(10);
        TokenBatch batch = raggedBatch(random, 20, 200);
        float[] behavior = gaussians(random, batch.tokenCount(), 2.0);
        float[] proximal = withRatios(random, behavior, 1);
        byte[] previous = new byte[batch.tokenCount()];
        for (double threshold = 1e-3; threshold < 10; threshold *= 1.3) {
            byte[] mask = new byte[batch.tokenCount()];
            new SecondMomentMask(threshold).compute(batch, LogRatio.anchor(proximal, behavior), mask);
            for (int t = 0; t < mask.length; t++) {
                assertThat(mask[t]).isGreaterThanOrEqualTo(previous[t]);
            }
            previous = mask;
        }
    }

    @Test
    void shouldNotDependOnTheOrderOfSequencesWithoutTies() {
        Random random = new Random(12);
        for (int round = 0; round < 50; round++) {
            TokenBatch batch = raggedBatch(random, 8, 30);
            float[] behavior = gaussians(random, batch.tokenCount(), 2.0);
            float[] proximal = withRatios(random, behavior, 1);
            byte[] mask = new byte[batch.tokenCount()];
            new SecondMomentMask(0.05).compute(batch, LogRatio.anchor(proximal, behavior), mask);

            byte[] reversedMask = new byte[batch.tokenCount()];
            new SecondMomentMask(0.05)
                    .compute(reversed(batch), LogRatio.anchor(reversed(proximal), reversed(behavior)), reversedMask);
            for (int t = 0; t < mask.length; t++) {
                assertThat(reversedMask[mask.length - 1 - t]).isEqualTo(mask[t]);
            }
        }
    }

    /** The same tokens from the last to the first, so that sequences and tokens are in the opposite order. */
    private static TokenBatch reversed(TokenBatch batch) {
        int[] offsets = new int[batch.sequenceCount() + 1];
        for (int s = 0; s < offsets.length; s++) {
            offsets[s] = batch.tokenCount() - batch.offsets()[offsets.length - 1 - s];
        }
        byte[] mask = new byte[batch.tokenCount()];
        for (int t = 0; t < mask.length; t++) {
            mask[t] = (byte) (batch.isTrained(mask.length - 1 - t) ? 1 : 0);
        }
        return new TokenBatch(offsets, mask);
    }

    private static float[] reversed(float[] values) {
        float[] reversed = new float[values.length];
        for (int t = 0; t < values.length; t++) {
            reversed[t] = values[values.length - 1 - t];
        }
        return reversed;
    }

    private static void checkSummary(
            SecondMoment moment, TokenBatch batch, float[] behavior, float[] proximal, byte[] mask, double threshold) {
        double before = 0;
        double after = 0;
        int kept = 0;
        for (int t = 0; t < mask.length; t++) {
            if (batch.isTrained(t)) {
                double logRatio = (double) proximal[t] - behavior[t];
                before += logRatio * logRatio;
                after += mask[t] * logRatio * logRatio;
                kept += mask[t];
            }
        }
        assertThat(moment.candidates()).isEqualTo(batch.trainedTokens());
        assertThat(moment.candidates() - moment.masked()).isEqualTo(kept);
        if (kept > 0) {
            assertThat(moment.before()).isCloseTo(before / batch.trainedTokens(), within(1e-12 * before));
            assertThat(moment.after()).isCloseTo(after / kept, within(1e-12 * after));
            assertThat(moment.withinThreshold()).isEqualTo(moment.after() < threshold);
        }
    }

    private static TokenBatch raggedBatch(Random random, int maxSequences, int maxTokens) {
        int sequences = 1 + random.nextInt(maxSequences);
        int[] offsets = new int[sequences + 1];
        for (int s = 0; s < sequences; s++) {
            offsets[s + 1] = offsets[s] + (random.nextInt(4) == 0 ? random.nextInt(2) : random.nextInt(maxTokens + 1));
        }
        byte[] mask = new byte[offsets[sequences]];
        for (int s = 0; s < sequences; s++) {
            double share = random.nextInt(5) == 0 ? 0 : random.nextDouble();
            for (int t = offsets[s]; t < offsets[s + 1]; t++) {
                mask[t] = (byte) (random.nextDouble() < share ? 1 : 0);
            }
        }
        return new TokenBatch(offsets, mask);
    }

    private static float[] gaussians(Random random, int count, double deviation) {
        float[] values = new float[count];
        for (int i = 0; i < count; i++) {
            values[i] = (float) (deviation * random.nextGaussian());
        }
        return values;
    }

    /** Log ratios of several kinds: light, heavy-tailed, few distinct values (ties), all equal, extreme, tiny. */
    private static float[] withRatios(Random random, float[] behavior, int kind) {
        float[] proximal = new float[behavior.length];
        for (int t = 0; t < behavior.length; t++) {
            double logRatio = switch (kind) {
                case 0 -> 0.2 * random.nextGaussian();
                case 1 -> 0.05 * Math.exp(2 * random.nextGaussian()) * (random.nextBoolean() ? 1 : -1);
                case 2 -> 0.25 * random.nextInt(9);
                case 3 -> 0.5;
                case 4 -> 80 * random.nextGaussian();
                default -> 1e-4 * random.nextGaussian();
            };
            proximal[t] =
                    kind == 2 || kind == 3 ? quarters(behavior, t) + (float) logRatio : behavior[t] + (float) logRatio;
        }
        return proximal;
    }

    /** Rounds a log-prob to a quarter, in place, so that ratios of quarters are exact and tie. */
    private static float quarters(float[] behavior, int t) {
        behavior[t] = Math.round(behavior[t] * 4) / 4f;
        return behavior[t];
    }
}
